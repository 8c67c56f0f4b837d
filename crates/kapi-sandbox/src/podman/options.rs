//! What only a container has: its image, its caches, and what podman is told.
//!
//! Every value is checked by [`PodmanOptions::check`] before it becomes an argument: nothing in it can be
//! read as another option. Does not know the command line.

use std::path::{Component, Path, PathBuf};

use crate::podman::error::PodmanError;

/// The options of the container level.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PodmanOptions {
    /// The image to take the root from: `localhost/kapi:latest`.
    pub image: String,
    /// The program that makes the container, by name or absolute path; `None` is podman's choice.
    pub runtime: Option<String>,
    /// Limits of each process; one that is not named here is the caller's own.
    pub ulimits: Vec<Ulimit>,
    /// Who the caller is inside.
    pub userns: Userns,
    /// What makes the control groups.
    pub cgroup_manager: CgroupManager,
    /// Named volumes, made when they are missing and kept.
    pub volumes: Vec<Volume>,
    /// Further `--security-opt` values that narrow: `seccomp=<file>`, `apparmor=<profile>`,
    /// `label=type:<type>`, `mask=<path>`.
    pub security: Vec<String>,
    /// Whether a missing image may be fetched.
    pub pull: Pull,
}

/// One limit of each process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ulimit {
    /// Which, by podman's name: `nofile`, `nproc`.
    pub name: String,
    /// The limit.
    pub soft: u64,
    /// How far a process may raise it.
    pub hard: u64,
}

/// Who the caller is inside.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Userns {
    /// Their own number; a number above 60000 becomes 1000, as images have no room for it. Started
    /// by root there is no mapping: root without capabilities, and the grade says so.
    #[default]
    Auto,
    /// Always their own number; refused when root starts it.
    KeepId,
    /// These numbers; refused when root starts it.
    KeepIdAs {
        /// The user inside.
        uid: u32,
        /// The group inside.
        gid: u32,
    },
}

/// What makes the control groups.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CgroupManager {
    /// What podman is configured for.
    #[default]
    Configured,
    /// The file system itself.
    Cgroupfs,
    /// The system's service manager.
    Systemd,
}

/// A named volume.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Volume {
    /// Its name among the user's volumes.
    pub name: String,
    /// Where it appears.
    pub inside: PathBuf,
}

/// Whether an image may be fetched.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Pull {
    /// It must be there.
    #[default]
    Never,
    /// It is fetched when it is not there.
    Missing,
}

impl Pull {
    pub(super) fn word(self) -> &'static str {
        match self {
            Self::Never => "never",
            Self::Missing => "missing",
        }
    }
}

/// The limits podman knows by name.
const ULIMITS: &[&str] = &[
    "as",
    "core",
    "cpu",
    "data",
    "fsize",
    "locks",
    "memlock",
    "msgqueue",
    "nice",
    "nofile",
    "nproc",
    "rss",
    "rtprio",
    "rttime",
    "sigpending",
    "stack",
];
/// The longest name of an image.
const IMAGE_CHARS_MAX: usize = 255;
/// The longest name of a container or volume.
const NAME_CHARS_MAX: usize = 128;

impl PodmanOptions {
    /// Refuses every value that podman could take for something else, or that widens.
    pub fn check(&self) -> Result<(), PodmanError> {
        check_image(&self.image)?;
        if let Some(runtime) = &self.runtime {
            let is_path = runtime.starts_with('/') && is_plain(runtime);
            if !is_path && !is_name(runtime) {
                return Err(refused(
                    "runtime",
                    runtime,
                    "give a program's name or absolute path",
                ));
            }
        }
        for limit in &self.ulimits {
            if !ULIMITS.contains(&limit.name.as_str()) {
                return Err(refused(
                    "ulimit",
                    &limit.name,
                    "give one of podman's names, as nofile",
                ));
            }
            if limit.soft > limit.hard {
                return Err(refused(
                    "ulimit",
                    &limit.name,
                    "the soft limit is above the hard one",
                ));
            }
        }
        for volume in &self.volumes {
            if !is_name(&volume.name) {
                return Err(refused(
                    "volume",
                    &volume.name,
                    "use letters, digits, _, . and -",
                ));
            }
            check_inside(&volume.inside)?;
        }
        self.security
            .iter()
            .try_for_each(|option| check_security(option))
    }
}

/// Accepts the name of an image, with or without registry, tag and digest.
pub(super) fn check_image(image: &str) -> Result<(), PodmanError> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "._/:@-".contains(c);
    let is_good = image.len() <= IMAGE_CHARS_MAX
        && image.starts_with(|c: char| c.is_ascii_alphanumeric())
        && image.chars().all(is_word);
    if is_good {
        return Ok(());
    }
    let why = if image.is_empty() {
        "no image is configured; build one with kapi sandbox image and set it"
    } else {
        "use letters, digits, _, ., /, :, @ and -, and start with a letter or digit"
    };
    Err(refused("image", image, why))
}

/// Accepts the name of a sandbox, which becomes part of names and labels.
pub(super) fn check_name(name: &str) -> Result<(), PodmanError> {
    if is_name(name) {
        return Ok(());
    }
    Err(refused("name", name, "use letters, digits, _, . and -"))
}

/// Accepts a host name.
pub(super) fn check_hostname(name: &str) -> Result<(), PodmanError> {
    let is_word = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '.';
    if !name.is_empty() && name.len() <= 64 && !name.starts_with('-') && name.chars().all(is_word) {
        return Ok(());
    }
    Err(refused(
        "host name",
        name,
        "use at most 64 letters, digits, . and -",
    ))
}

/// Accepts a place inside: absolute, not the root, without `..` and control characters.
pub(super) fn check_inside(path: &Path) -> Result<(), PodmanError> {
    let text = path.to_str().filter(|text| is_plain(text));
    let has_up = path.components().any(|part| part == Component::ParentDir);
    if text.is_some() && path.is_absolute() && !has_up && path.file_name().is_some() {
        return Ok(());
    }
    let shown = path.to_string_lossy();
    let why = "a path inside must be absolute, below /, without .. and control characters";
    Err(refused("path inside", &shown, why))
}

/// Accepts a host path that can be written on a command line.
pub(super) fn check_host(path: &Path) -> Result<(), PodmanError> {
    if path.is_absolute() && path.to_str().is_some_and(is_plain) {
        return Ok(());
    }
    let why = "podman accepts only absolute paths without control characters";
    Err(refused("host path", &path.to_string_lossy(), why))
}

fn check_security(option: &str) -> Result<(), PodmanError> {
    let (key, value) = option.split_once('=').unwrap_or((option, ""));
    let narrows = match key {
        "seccomp" => value.starts_with('/') && is_plain(value),
        "apparmor" => is_name(value) && value != "unconfined",
        "label" => value.starts_with("type:") && is_name(value.trim_start_matches("type:")),
        "mask" => value.starts_with('/') && is_plain(value),
        _ => false,
    };
    if narrows {
        return Ok(());
    }
    let why =
        "only seccomp=<file>, apparmor=<profile>, label=type:<type> and mask=<path> are allowed";
    Err(refused("security option", option, why))
}

fn is_name(text: &str) -> bool {
    let is_word = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
    text.len() <= NAME_CHARS_MAX
        && text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(is_word)
}

fn is_plain(text: &str) -> bool {
    !text.chars().any(char::is_control)
}

fn refused(what: &'static str, value: &str, why: &'static str) -> PodmanError {
    PodmanError::Refused {
        what,
        value: value.chars().filter(|c| !c.is_control()).collect(),
        why,
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{
        PodmanOptions, Ulimit, Volume, check_hostname, check_image, check_inside, check_name,
    };

    fn image(name: &str) -> PodmanOptions {
        PodmanOptions {
            image: name.to_owned(),
            ..PodmanOptions::default()
        }
    }

    #[test]
    fn an_image_is_a_name_and_never_an_option() {
        for good in [
            "localhost/kapi:1",
            "ubuntu:24.04",
            "h.example:5000/a/b@sha256:0f",
        ] {
            check_image(good).unwrap();
        }
        for bad in [
            "",
            "--privileged",
            "-v/:/host",
            "a b",
            "a\nb",
            "a,b",
            "./dir",
            "a;b",
            "$(id)",
        ] {
            assert!(check_image(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_cannot_carry_anything_else() {
        check_name("007-fix.login_1").unwrap();
        check_hostname("kapi-test").unwrap();
        for bad in [
            "", "-x", "../x", "a/b", "a b", "a\n", "a=b", "a:b", "\u{e9}",
        ] {
            assert!(check_name(bad).is_err(), "{bad}");
        }
        for bad in ["", "-x", "a_b", &"n".repeat(65), "a\n"] {
            assert!(check_hostname(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_place_inside_stays_below_the_root() {
        for good in ["/workspace", "/a,b:c/d \"e", "/run/x"] {
            check_inside(Path::new(good)).unwrap();
        }
        for bad in ["/", "relative", "/a/../b", "/a\nb", "-v", ""] {
            assert!(check_inside(Path::new(bad)).is_err(), "{bad}");
        }
    }

    #[test]
    fn options_may_narrow_and_not_widen() {
        let mut options = image("a");
        options.security = [
            "seccomp=/etc/kapi.json",
            "apparmor=kapi",
            "label=type:kapi_t",
        ]
        .map(str::to_owned)
        .to_vec();
        options.check().unwrap();
        for bad in [
            "seccomp=unconfined",
            "apparmor=unconfined",
            "label=disable",
            "unmask=ALL",
            "systempaths=unconfined",
            "no-new-privileges=false",
            "seccomp=/a\n--privileged",
        ] {
            options.security = vec![bad.to_owned()];
            assert!(options.check().is_err(), "{bad}");
        }
    }

    #[test]
    fn limits_volumes_and_runtimes_are_checked_too() {
        let limit = |name: &str, soft, hard| Ulimit {
            name: name.to_owned(),
            soft,
            hard,
        };
        let with = |change: &dyn Fn(&mut PodmanOptions)| {
            let mut options = image("a");
            change(&mut options);
            options.check().is_ok()
        };
        assert!(with(&|o| o.ulimits = vec![limit("nofile", 1, 2)]));
        assert!(!with(&|o| o.ulimits = vec![limit("nofile", 3, 2)]));
        assert!(!with(
            &|o| o.ulimits = vec![limit("nofile=1 --privileged", 1, 2)]
        ));
        assert!(with(&|o| o.runtime = Some("runc".to_owned())));
        assert!(with(&|o| o.runtime = Some("/usr/bin/crun".to_owned())));
        assert!(!with(&|o| o.runtime = Some("--debug".to_owned())));
        let volume = |name: &str, inside: &str| Volume {
            name: name.to_owned(),
            inside: inside.into(),
        };
        assert!(with(
            &|o| o.volumes = vec![volume("kapi-1-m2", "/home/agent/.m2")]
        ));
        assert!(!with(&|o| o.volumes = vec![volume("/etc", "/x")]));
        assert!(!with(&|o| o.volumes = vec![volume("a,b", "/x")]));
        assert!(!with(&|o| o.volumes = vec![volume("a", "x")]));
    }
}
