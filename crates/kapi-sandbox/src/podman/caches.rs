//! Build caches of one agent: where they lie, and the configuration that keeps them its own.
//!
//! Nothing here is podman's alone: a container takes [`volumes`], a native sandbox [`mounts`], and
//! both take [`files`]. The configuration narrows what build tools do by themselves; what a program
//! can reach over the network is not decided here.

use std::path::{Path, PathBuf};

use super::error::PodmanError;
use super::options::{Volume, check_name};
use crate::spec::{Mount, MountAccess};

/// One cache.
struct Cache {
    /// Ends the name of its volume or directory.
    name: &'static str,
    /// Where it is below the home.
    location: &'static str,
}

const CACHES: &[Cache] = &[
    Cache {
        name: "m2",
        location: ".m2/repository",
    },
    Cache {
        name: "ge",
        location: ".m2/.gradle-enterprise",
    },
    Cache {
        name: "gradle",
        location: ".gradle",
    },
    Cache {
        name: "npm",
        location: ".npm",
    },
    Cache {
        name: "cargo",
        location: ".cargo/registry",
    },
];

const MAVEN_SETTINGS: &str = include_str!("caches/settings.xml");
const GRADLE_INIT: &str = include_str!("caches/init.gradle");
const GRADLE_PROPERTIES: &str = include_str!("caches/gradle.properties");
/// What stands in the Maven settings where the mirror's address belongs.
const MIRROR_MARK: &str = "@RELEASES@";
/// Where the settings name repositories: only a mirror makes that necessary, as Maven's own first
/// repository is known to it and holds releases only.
const REPOSITORIES: [&str; 2] = ["      <repositories>\n", "      </pluginRepositories>\n"];

/// Returns the volumes of an agent's caches; its id keeps them apart from those of others.
pub fn volumes(id: &str, home: &Path) -> Result<Vec<Volume>, PodmanError> {
    check_name(id)?;
    let volume = |cache: &Cache| Volume {
        name: format!("kapi-{id}-{}", cache.name),
        inside: home.join(cache.location),
    };
    Ok(CACHES.iter().map(volume).collect())
}

/// Returns the same caches as directories below one of the agent's own on the host; the caller makes
/// them.
#[must_use]
pub fn mounts(directory: &Path, home: &Path) -> Vec<Mount> {
    let mount = |cache: &Cache| Mount {
        host: directory.join(cache.name),
        inside: home.join(cache.location),
        access: MountAccess::ReadWrite,
    };
    CACHES.iter().map(mount).collect()
}

/// Returns the read-only configuration of the build tools; releases come from the mirror if there is
/// one.
pub fn files(home: &Path, mirror: Option<&str>) -> Result<Vec<(PathBuf, Vec<u8>)>, PodmanError> {
    let settings = match mirror.map(check_address).transpose()? {
        Some(releases) => MAVEN_SETTINGS.replace(MIRROR_MARK, &escape(releases)),
        None => without_repositories(),
    };
    Ok(vec![
        (home.join(".m2/settings.xml"), settings.into_bytes()),
        (
            home.join(".gradle/init.d/kapi.gradle"),
            GRADLE_INIT.as_bytes().to_vec(),
        ),
        (
            home.join(".gradle/gradle.properties"),
            GRADLE_PROPERTIES.as_bytes().to_vec(),
        ),
    ])
}

fn check_address(address: &str) -> Result<&str, PodmanError> {
    let rest = address
        .strip_prefix("https://")
        .or_else(|| address.strip_prefix("http://"));
    let is_good = rest.is_some_and(|rest| {
        !rest.is_empty() && !rest.contains(|c: char| c.is_whitespace() || c.is_control())
    });
    if is_good {
        return Ok(address);
    }
    Err(PodmanError::Refused {
        what: "Maven mirror",
        value: address.chars().filter(|c| !c.is_control()).collect(),
        why: "give an address that starts with https:// or http://",
    })
}

fn without_repositories() -> String {
    let [from, to] = REPOSITORIES;
    let before = MAVEN_SETTINGS.split(from).next().unwrap_or_default();
    let after = MAVEN_SETTINGS.split(to).nth(1).unwrap_or_default();
    format!("{before}{after}")
}

fn escape(text: &str) -> String {
    let pairs = [
        ("&", "&amp;"),
        ("<", "&lt;"),
        (">", "&gt;"),
        ("\"", "&quot;"),
    ];
    pairs
        .iter()
        .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{files, mounts, volumes};

    const HOME: &str = "/home/agent";

    #[test]
    fn the_caches_of_two_agents_share_nothing() {
        let names = |id: &str| -> Vec<String> {
            let volumes = volumes(id, Path::new(HOME)).unwrap();
            volumes.into_iter().map(|volume| volume.name).collect()
        };
        let expected = [
            "kapi-1-m2",
            "kapi-1-ge",
            "kapi-1-gradle",
            "kapi-1-npm",
            "kapi-1-cargo",
        ];
        assert_eq!(names("1"), expected);
        assert!(names("2").iter().all(|name| !names("1").contains(name)));
        assert!(volumes("../1", Path::new(HOME)).is_err());
        assert!(volumes("-v", Path::new(HOME)).is_err());
    }

    #[test]
    fn both_levels_have_the_caches_at_the_same_places() {
        let volumes = volumes("1", Path::new(HOME)).unwrap();
        let mounts = mounts(Path::new("/caches/1"), Path::new(HOME));
        let inside: Vec<_> = mounts.iter().map(|mount| &mount.inside).collect();
        assert_eq!(
            inside,
            volumes
                .iter()
                .map(|volume| &volume.inside)
                .collect::<Vec<_>>()
        );
        assert_eq!(mounts[0].host, Path::new("/caches/1/m2"));
        assert_eq!(mounts[0].inside, Path::new("/home/agent/.m2/repository"));
    }

    #[test]
    fn a_mirror_is_an_address_and_never_more() {
        let settings = |mirror| {
            let files = files(Path::new(HOME), mirror).unwrap();
            String::from_utf8(files[0].1.clone()).unwrap()
        };
        let usual = settings(None);
        assert!(
            !usual.contains('@') && !usual.contains("epositories>"),
            "{usual}"
        );
        assert!(
            usual.contains("*,!central") && usual.ends_with("</settings>\n"),
            "{usual}"
        );
        let own = settings(Some("https://m.example/a?b=1&c=<x>"));
        assert!(
            own.contains("<url>https://m.example/a?b=1&amp;c=&lt;x&gt;</url>"),
            "{own}"
        );
        assert!(!own.contains('@'), "{own}");
        for bad in [
            "ftp://x",
            "https://",
            "https://a b",
            "file:///etc",
            "https://a\n<x>",
        ] {
            assert!(files(Path::new(HOME), Some(bad)).is_err(), "{bad}");
        }
    }
}
