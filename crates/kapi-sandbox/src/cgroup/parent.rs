//! Where groups of ours can be made: below our own group, in whichever tree has the controller.
//!
//! Reads what the kernel says of this process and of its mounts. In the second generation, limits need
//! a parent without processes that hands its controllers down; one is found, or made of our own group.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};
use rustix::io::Errno;
use rustix::process::getpid;

use super::{CgroupVersion, Controller, Unavailable, failure, leftover, write};
use crate::status::StepFailure;

/// A directory in which a group for some controllers can be made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct GroupParent {
    pub version: CgroupVersion,
    pub controllers: Vec<Controller>,
    pub parent: PathBuf,
}

/// This process's own group in one tree.
#[derive(Debug, Clone, PartialEq, Eq)]
struct OwnGroup {
    version: CgroupVersion,
    /// The names of the tree's controllers; the second generation says elsewhere.
    controllers: Vec<String>,
    /// Where the tree is mounted.
    top: PathBuf,
    directory: PathBuf,
}

/// Finds a place for each of the controllers, or what is in the way.
pub(super) fn find(wanted: &[Controller]) -> (Vec<GroupParent>, Vec<Unavailable>) {
    let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
    let trees = own_groups(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"));
    let mut locations: Vec<GroupParent> = Vec::new();
    let mut missing = Vec::new();
    let mut second = Vec::new();
    for controller in wanted {
        let tree = trees.iter().find(|tree| {
            let names = &tree.controllers;
            tree.version == CgroupVersion::One && names.iter().any(|name| name == controller.name())
        });
        match tree {
            Some(tree) => add(&mut locations, tree, *controller),
            None => second.push(*controller),
        }
    }
    if !second.is_empty() {
        let tree = trees.iter().find(|tree| tree.version == CgroupVersion::Two);
        match second_location(tree, &second) {
            Ok(location) => locations.push(location),
            Err(failure) => missing.extend(second.into_iter().map(|controller| Unavailable {
                controller,
                failure: failure.clone(),
            })),
        }
    }
    (locations, missing)
}

fn add(locations: &mut Vec<GroupParent>, tree: &OwnGroup, controller: Controller) {
    let same = locations
        .iter_mut()
        .find(|location| location.parent == tree.directory);
    match same {
        Some(location) => location.controllers.push(controller),
        None => locations.push(GroupParent {
            version: CgroupVersion::One,
            controllers: vec![controller],
            parent: tree.directory.clone(),
        }),
    }
}

/// Finds the nearest group above us, ourselves included, that hands the controllers down and that we
/// may change; failing that, makes our own group one.
fn second_location(
    tree: Option<&OwnGroup>,
    wanted: &[Controller],
) -> Result<GroupParent, StepFailure> {
    let Some(tree) = tree else {
        return Err(StepFailure::new(
            "find cgroup controller",
            "/proc/self/cgroup",
            Errno::NOENT,
        ));
    };
    let offered = tree.directory.join("cgroup.controllers");
    for controller in wanted {
        if !names(&offered, *controller)? {
            let target = format!("{} in {}", controller.name(), offered.display());
            return Err(StepFailure::new(
                "find cgroup controller",
                &target,
                Errno::NOENT,
            ));
        }
    }
    let location = |parent: &Path| GroupParent {
        version: CgroupVersion::Two,
        controllers: wanted.to_vec(),
        parent: parent.to_path_buf(),
    };
    let above = tree.directory.ancestors();
    let mut above = above.take_while(|directory| directory.starts_with(&tree.top));
    if let Some(parent) = above.find(|directory| handle_down(directory, wanted)) {
        return Ok(location(parent));
    }
    become_parent(&tree.directory, wanted)?;
    Ok(location(&tree.directory))
}

fn handle_down(directory: &Path, wanted: &[Controller]) -> bool {
    let control = directory.join("cgroup.subtree_control");
    let may_write = |path: &Path| access(path, Access::WRITE_OK).is_ok();
    let all = wanted
        .iter()
        .all(|controller| names(&control, *controller).unwrap_or(false));
    all && may_write(directory) && may_write(&directory.join("cgroup.procs"))
}

/// Tells whether a list of controllers holds one.
fn names(list: &Path, controller: Controller) -> Result<bool, StepFailure> {
    let text = fs::read_to_string(list).map_err(|error| failure("read", list, &error))?;
    Ok(text
        .split_whitespace()
        .any(|name| name == controller.name()))
}

/// Moves this process to a leaf below its own group and lets the group hand its controllers down. The
/// kernel refuses that while another process is in the group; then nothing has changed.
fn become_parent(own: &Path, wanted: &[Controller]) -> Result<(), StepFailure> {
    let leaf = own.join(leftover::owned_name("host")?);
    match fs::create_dir(&leaf) {
        Ok(()) => {}
        Err(error) if Errno::from_io_error(&error) == Some(Errno::EXIST) => {}
        Err(error) => return Err(failure("mkdir", &leaf, &error)),
    }
    let pid = getpid().as_raw_nonzero().to_string();
    let changed = write(&leaf.join("cgroup.procs"), &pid).and_then(|()| {
        let list: Vec<String> = wanted
            .iter()
            .map(|controller| format!("+{}", controller.name()))
            .collect();
        write(&own.join("cgroup.subtree_control"), &list.join(" "))
    });
    if changed.is_err() {
        // Back to where we were; if even that is refused, the leaf is as good a place to be.
        if write(&own.join("cgroup.procs"), &pid).is_ok() {
            fs::remove_dir(&leaf).map_err(|error| failure("rmdir", &leaf, &error))?;
        }
    }
    changed
}

/// Joins what the kernel says of this process with where the trees are mounted.
fn own_groups(groups: &str, mounts: &str) -> Vec<OwnGroup> {
    let mounted: Vec<CgroupMount<'_>> = mounts.lines().filter_map(mounted).collect();
    let own = |line: &str| {
        let mut fields = line.splitn(3, ':');
        let (hierarchy, controllers) = (fields.next()?, fields.next()?);
        let path = Path::new(fields.next()?);
        let version = match (hierarchy, controllers) {
            ("0", "") => CgroupVersion::Two,
            _ => CgroupVersion::One,
        };
        let mount = mounted.iter().find(|mount| {
            mount.version == version
                && (version == CgroupVersion::Two || has_all(mount.options, controllers))
        })?;
        // A group outside of what is mounted cannot be reached.
        let below = path.strip_prefix(mount.root).ok()?;
        let top = PathBuf::from(mount.point);
        Some(OwnGroup {
            version,
            controllers: controllers.split(',').map(str::to_owned).collect(),
            directory: if below.as_os_str().is_empty() {
                top.clone()
            } else {
                top.join(below)
            },
            top,
        })
    };
    groups.lines().filter_map(own).collect()
}

fn has_all(options: &str, controllers: &str) -> bool {
    controllers
        .split(',')
        .all(|name| options.split(',').any(|option| option == name))
}

/// A mounted tree of groups.
struct CgroupMount<'a> {
    version: CgroupVersion,
    root: &'a str,
    point: &'a str,
    options: &'a str,
}

fn mounted(line: &str) -> Option<CgroupMount<'_>> {
    let (mount, file_system) = line.split_once(" - ")?;
    let mut fields = mount.split(' ').skip(3);
    let (root, point) = (fields.next()?, fields.next()?);
    let mut fields = file_system.split(' ');
    let version = match fields.next()? {
        "cgroup" => CgroupVersion::One,
        "cgroup2" => CgroupVersion::Two,
        _ => return None,
    };
    Some(CgroupMount {
        version,
        root,
        point,
        options: fields.nth(1)?,
    })
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::{Path, PathBuf};

    use super::{OwnGroup, handle_down, own_groups, second_location};
    use crate::cgroup::{CgroupVersion, Controller};

    fn own(version: CgroupVersion, controllers: &str, top: &str, directory: &str) -> OwnGroup {
        OwnGroup {
            version,
            controllers: vec![controllers.to_owned()],
            top: PathBuf::from(top),
            directory: PathBuf::from(directory),
        }
    }

    #[test]
    fn our_groups_are_found_in_mixed_trees_and_in_containers() {
        let groups = "9:name=systemd:/\n8:pids:/a/b\n4:memory:/docker/x\n1:cpu:/elsewhere\n0::/user.slice/s.scope\n";
        let mounts = "\
            30 25 0:26 / /sys/fs/cgroup/pids rw,nosuid - cgroup cgroup rw,pids\n\
            31 25 0:27 /docker/x /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
            32 25 0:28 /docker/x /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n\
            33 25 0:29 / /sys/fs/cgroup/unified rw shared:7 - cgroup2 cgroup2 rw,nsdelegate\n\
            34 25 0:30 / /proc rw - proc proc rw\n";
        let two = "/sys/fs/cgroup/unified";
        assert_eq!(
            own_groups(groups, mounts),
            [
                own(
                    CgroupVersion::One,
                    "pids",
                    "/sys/fs/cgroup/pids",
                    "/sys/fs/cgroup/pids/a/b"
                ),
                own(
                    CgroupVersion::One,
                    "memory",
                    "/sys/fs/cgroup/memory",
                    "/sys/fs/cgroup/memory"
                ),
                own(
                    CgroupVersion::Two,
                    "",
                    two,
                    &format!("{two}/user.slice/s.scope")
                ),
            ]
        );
    }

    /// Makes what a group of the second generation looks like.
    fn group(path: &Path, offered: &str, handed_down: &str) {
        fs::create_dir_all(path).unwrap();
        for (file, text) in [
            ("cgroup.controllers", offered),
            ("cgroup.subtree_control", handed_down),
            ("cgroup.procs", ""),
        ] {
            fs::File::create(path.join(file)).unwrap();
            super::write(&path.join(file), text).unwrap();
        }
    }

    #[test]
    fn the_nearest_group_that_hands_controllers_down_is_the_parent() {
        let top = tempfile::tempdir().unwrap();
        let slice = top.path().join("app.slice");
        let scope = slice.join("shell.scope");
        group(top.path(), "cpu memory pids", "cpu memory pids");
        group(&slice, "memory pids", "memory pids");
        group(&scope, "memory pids", "");
        let tree = OwnGroup {
            version: CgroupVersion::Two,
            controllers: Vec::new(),
            top: top.path().to_path_buf(),
            directory: scope,
        };
        let wanted = [Controller::Memory, Controller::Processes];
        let location = second_location(Some(&tree), &wanted).unwrap();
        assert_eq!(location.parent, slice);
        assert!(!handle_down(&slice, &[Controller::Processor]));
        let missing = second_location(Some(&tree), &[Controller::Processor]).unwrap_err();
        assert!(missing.target.starts_with("cpu in "), "{missing:?}");
        let none = second_location(None, &wanted).unwrap_err();
        assert_eq!(none.target, "/proc/self/cgroup");
    }

    #[test]
    fn our_own_group_becomes_the_parent_if_no_other_is() {
        let top = tempfile::tempdir().unwrap();
        group(top.path(), "memory", "");
        let tree = OwnGroup {
            version: CgroupVersion::Two,
            controllers: Vec::new(),
            top: top.path().to_path_buf(),
            directory: top.path().to_path_buf(),
        };
        // Outside of a real tree the leaf has no file to move to, so this must fail and clean up.
        let refused = second_location(Some(&tree), &[Controller::Memory]).unwrap_err();
        assert!(refused.target.ends_with("cgroup.procs"), "{refused:?}");
        let left = fs::read_dir(top.path()).unwrap().flatten();
        assert_eq!(left.filter(|entry| entry.path().is_dir()).count(), 0);
    }
}
