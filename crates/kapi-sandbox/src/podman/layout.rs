//! The mounts and volumes of a container, worked out from the spec before podman is asked.
//!
//! Podman orders mounts by depth and refuses two at one path, so what a later mount would cover is
//! left out here, and aliases become mounts of their own. Pure but for the search for links.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use super::error::PodmanError;
use super::options::{check_host, check_inside};
use crate::error::SandboxError;
use crate::spec::{MountAccess, OverlayLayer, SandboxSpec};
use crate::status::StepFailure;

/// One mount or volume of a container.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ContainerEntry {
    /// The path in the container.
    pub inside: PathBuf,
    /// What stands there.
    pub kind: ContainerEntryKind,
}

/// The kinds of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum ContainerEntryKind {
    /// A host path.
    Bind {
        /// The path on the host.
        host: PathBuf,
        /// Whether it can be written.
        rights: BindRights,
    },
    /// A host directory under a layer; the number tells layers apart.
    Layered {
        /// The layer's index in the layout.
        index: usize,
    },
    /// A named volume.
    Volume {
        /// Its name.
        name: String,
    },
}

/// Whether a host path can be written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum BindRights {
    /// Read only.
    Read,
    /// Read and write.
    Write,
}

/// Everything that stands in a container.
#[derive(Debug, Default)]
pub(super) struct ContainerLayout {
    /// The entries, none of them covered by another.
    pub entries: Vec<ContainerEntry>,
    /// What is under each layer, and the layer.
    pub layers: Vec<(PathBuf, OverlayLayer)>,
}

/// Works out the layout of a container; `sealed` are the host's copies of the spec's files, in their order.
pub(super) fn arrange(
    spec: &SandboxSpec,
    sealed: &[PathBuf],
) -> Result<ContainerLayout, SandboxError> {
    let mut layers = Vec::new();
    let mut entries = vec![bind(&spec.home_host, &spec.home_inside, BindRights::Write)];
    for mount in &spec.mounts {
        entries.push(match &mount.access {
            MountAccess::ReadOnly => bind(&mount.host, &mount.inside, BindRights::Read),
            MountAccess::ReadWrite => bind(&mount.host, &mount.inside, BindRights::Write),
            MountAccess::CopyOnWrite(layer) => {
                layers.push((mount.host.clone(), layer.clone()));
                let index = layers.len() - 1;
                ContainerEntry {
                    inside: mount.inside.clone(),
                    kind: ContainerEntryKind::Layered { index },
                }
            }
        });
    }
    entries.extend(spec.podman.volumes.iter().map(|volume| ContainerEntry {
        inside: volume.inside.clone(),
        kind: ContainerEntryKind::Volume {
            name: volume.name.clone(),
        },
    }));
    let files = spec.files.iter().zip(sealed);
    entries.extend(files.map(|((inside, _), host)| bind(host, inside, BindRights::Read)));
    for (shown, at) in &spec.aliases {
        let again = shown_again(&uncovered(&entries), shown, at)?;
        entries.extend(again);
    }
    let entries = uncovered(&entries);
    let layout = ContainerLayout { entries, layers };
    check(&layout)?;
    Ok(layout)
}

fn bind(host: &Path, inside: &Path, rights: BindRights) -> ContainerEntry {
    ContainerEntry {
        inside: inside.to_path_buf(),
        kind: ContainerEntryKind::Bind {
            host: host.to_path_buf(),
            rights,
        },
    }
}

/// Leaves out the entries that a later one covers.
fn uncovered(entries: &[ContainerEntry]) -> Vec<ContainerEntry> {
    let is_covered = |index: usize, one: &ContainerEntry| {
        let mut later = entries.iter().skip(index + 1);
        later.any(|other| one.inside.starts_with(&other.inside))
    };
    let kept = entries
        .iter()
        .enumerate()
        .filter(|(index, one)| !is_covered(*index, one));
    kept.map(|(_, one)| one.clone()).collect()
}

/// Returns the entries that show a path once more at another: its own entry and all below it.
fn shown_again(
    entries: &[ContainerEntry],
    shown: &Path,
    at: &Path,
) -> Result<Vec<ContainerEntry>, PodmanError> {
    let holder = entries
        .iter()
        .filter(|one| shown.starts_with(&one.inside))
        .max_by_key(|one| one.inside.components().count());
    let refused = |why| PodmanError::Refused {
        what: "alias",
        value: shown.display().to_string(),
        why,
    };
    let holder = holder.ok_or_else(|| refused("only what a mount shows can be shown again"))?;
    let rest = shown.strip_prefix(&holder.inside).unwrap_or(Path::new(""));
    let top = match &holder.kind {
        ContainerEntryKind::Bind { host, rights } if rest.as_os_str().is_empty() => {
            bind(host, at, *rights)
        }
        ContainerEntryKind::Bind { host, rights } => bind(&host.join(rest), at, *rights),
        whole if rest.as_os_str().is_empty() => ContainerEntry {
            inside: at.to_path_buf(),
            kind: whole.clone(),
        },
        ContainerEntryKind::Layered { .. } | ContainerEntryKind::Volume { .. } => {
            return Err(refused("a part of a layer or volume cannot be shown again"));
        }
    };
    let below = entries.iter().filter_map(|one| {
        let rest = one.inside.strip_prefix(shown).ok()?;
        (!rest.as_os_str().is_empty()).then(|| ContainerEntry {
            inside: at.join(rest),
            kind: one.kind.clone(),
        })
    });
    Ok(std::iter::once(top).chain(below).collect())
}

fn check(layout: &ContainerLayout) -> Result<(), SandboxError> {
    for one in &layout.entries {
        check_inside(&one.inside)?;
        if let ContainerEntryKind::Bind { host, .. } = &one.kind {
            check_host(host)?;
            must_exist(host)?;
        }
    }
    for (lower, layer) in &layout.layers {
        for path in [lower, &layer.upper, &layer.work] {
            check_host(path)?;
            must_exist(path)?;
        }
    }
    layout
        .entries
        .iter()
        .try_for_each(|one| refuse_links(one, layout))
}

fn must_exist(path: &Path) -> Result<(), PodmanError> {
    fs::metadata(path)
        .map(|_| ())
        .map_err(PodmanError::file("mount", path))
}

/// Refuses a path that leads through a link that an earlier run may have left in a mount.
fn refuse_links(one: &ContainerEntry, layout: &ContainerLayout) -> Result<(), SandboxError> {
    let Some(holder) = holder(one, layout) else {
        return Ok(());
    };
    let rest = one
        .inside
        .strip_prefix(&holder.inside)
        .unwrap_or(Path::new(""));
    let views: Vec<&Path> = match &holder.kind {
        ContainerEntryKind::Bind { host, .. } => vec![host],
        ContainerEntryKind::Layered { index } => {
            let layer = layout.layers.get(*index);
            let both = layer.map(|(lower, layer)| [lower.as_path(), layer.upper.as_path()]);
            both.into_iter().flatten().collect()
        }
        ContainerEntryKind::Volume { .. } => Vec::new(),
    };
    if views.into_iter().any(|view| leads_through_link(view, rest)) {
        let inside = one.inside.display().to_string();
        return Err(SandboxError::setup(&StepFailure::new(
            "resolve",
            &inside,
            Errno::LOOP,
        )));
    }
    Ok(())
}

/// Returns the entry below which another stands, if it is not the root.
pub(super) fn holder<'a>(
    one: &ContainerEntry,
    layout: &'a ContainerLayout,
) -> Option<&'a ContainerEntry> {
    let holders = layout
        .entries
        .iter()
        .filter(|other| one.inside != other.inside && one.inside.starts_with(&other.inside));
    holders.max_by_key(|other| other.inside.components().count())
}

fn leads_through_link(top: &Path, rest: &Path) -> bool {
    let mut path = top.to_path_buf();
    rest.components().any(|part| {
        path.push(part);
        path.is_symlink()
    })
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::{BindRights, ContainerEntry, ContainerEntryKind, arrange, bind};
    use crate::podman::options::Volume;
    use crate::spec::{IsolationLevel, Mount, MountAccess, OverlayLayer, SandboxSpec};

    fn spec(mounts: &[(&str, &str)]) -> SandboxSpec {
        let mut spec = SandboxSpec::new(
            IsolationLevel::Podman,
            "t",
            "/tmp".into(),
            "/bin/true".into(),
        );
        let mount = |(host, inside): &(&str, &str)| Mount {
            host: PathBuf::from(host),
            inside: PathBuf::from(inside),
            access: MountAccess::ReadOnly,
        };
        spec.mounts = mounts.iter().map(mount).collect();
        spec
    }

    fn layout(spec: &SandboxSpec, sealed: &[PathBuf]) -> Vec<String> {
        let show = |one: &ContainerEntry| {
            let kind = match &one.kind {
                ContainerEntryKind::Bind {
                    host,
                    rights: BindRights::Read,
                } => format!("{} ro", host.display()),
                ContainerEntryKind::Bind { host, .. } => host.display().to_string(),
                ContainerEntryKind::Layered { index } => format!("layer {index}"),
                ContainerEntryKind::Volume { name } => format!("volume {name}"),
            };
            format!("{} = {kind}", one.inside.display())
        };
        arrange(spec, sealed)
            .unwrap()
            .entries
            .iter()
            .map(show)
            .collect()
    }

    #[test]
    fn what_a_later_mount_covers_is_left_out() {
        let spec = spec(&[
            ("/usr", "/a/b"),
            ("/etc", "/a"),
            ("/usr", "/a/c"),
            ("/bin", "/a/c"),
        ]);
        let expected = ["/home/agent = /tmp", "/a = /etc ro", "/a/c = /bin ro"];
        assert_eq!(layout(&spec, &[]), expected);
    }

    #[test]
    fn an_alias_shows_the_mount_and_all_below_it() {
        let mut spec = spec(&[("/usr", "/workspace"), ("/etc", "/workspace/.git")]);
        spec.files = vec![("/workspace/x".into(), Vec::new())];
        spec.aliases = vec![
            ("/workspace".into(), "/src/app".into()),
            ("/workspace/lib".into(), "/l".into()),
        ];
        let expected = [
            "/home/agent = /tmp",
            "/workspace = /usr ro",
            "/workspace/.git = /etc ro",
            "/workspace/x = /bin/true ro",
            "/src/app = /usr ro",
            "/src/app/.git = /etc ro",
            "/src/app/x = /bin/true ro",
            "/l = /usr/lib ro",
        ];
        assert_eq!(layout(&spec, &["/bin/true".into()]), expected);
    }

    #[test]
    fn a_layer_is_shown_again_as_a_whole_only() {
        let mut spec = spec(&[("/usr", "/workspace")]);
        spec.mounts[0].access = MountAccess::CopyOnWrite(OverlayLayer {
            upper: "/tmp".into(),
            work: "/var".into(),
            beneath: Vec::new(),
        });
        spec.podman.volumes = vec![Volume {
            name: "v".to_owned(),
            inside: "/cache".into(),
        }];
        spec.aliases = vec![("/workspace".into(), "/again".into())];
        let expected = [
            "/home/agent = /tmp",
            "/workspace = layer 0",
            "/cache = volume v",
            "/again = layer 0",
        ];
        assert_eq!(layout(&spec, &[]), expected);
        spec.aliases = vec![("/workspace/part".into(), "/again".into())];
        assert!(arrange(&spec, &[]).is_err());
        spec.aliases = vec![("/nowhere".into(), "/again".into())];
        assert!(arrange(&spec, &[]).is_err());
    }

    #[test]
    fn a_missing_source_and_a_bad_place_are_refused() {
        for (host, inside) in [
            ("/no/such/place", "/x"),
            ("/usr", "/"),
            ("/usr", "a"),
            ("/usr", "/a/../b"),
        ] {
            assert!(
                arrange(&spec(&[(host, inside)]), &[]).is_err(),
                "{host} {inside}"
            );
        }
        let whole = bind(Path::new("/usr"), Path::new("/x"), BindRights::Read);
        assert_eq!(whole.inside, Path::new("/x"));
    }
}
