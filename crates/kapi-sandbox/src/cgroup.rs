//! Control groups: what the kernel counts for all processes of a sandbox together.
//!
//! A group is made below our own, holds one sandbox, and is removed with it. Knows nothing of what runs
//! in it; where a host grants no groups, the caller is told why and limits otherwise.

mod leftover;
mod limit;
mod parent;

use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::io::Errno;

use self::parent::GroupParent;
use crate::spec::Resources;
use crate::status::StepFailure;

/// How long the kernel may take to let go of a group whose processes are gone.
const REMOVAL_WAIT: Duration = Duration::from_secs(2);
/// The pause between attempts to remove one.
const REMOVAL_PAUSE: Duration = Duration::from_millis(1);

/// What a controller counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Controller {
    /// Bytes of memory.
    Memory,
    /// Processes and threads.
    Processes,
    /// Time of processors.
    Processor,
}

/// The two generations of the interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CgroupVersion {
    /// One tree for each controller.
    One,
    /// One tree for all.
    Two,
}

/// A controller that cannot be used here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Unavailable {
    /// The controller.
    pub controller: Controller,
    /// The refused step.
    pub failure: StepFailure,
}

/// The groups of one sandbox. Removed when dropped, if its processes are gone by then.
#[derive(Debug, Default)]
pub(crate) struct ControlGroup {
    directories: Vec<GroupDirectory>,
}

#[derive(Debug)]
struct GroupDirectory {
    path: PathBuf,
    version: CgroupVersion,
    controllers: Vec<Controller>,
}

impl Controller {
    /// All of them, in the order they are named to people.
    pub(crate) const ALL: [Self; 3] = [Self::Memory, Self::Processes, Self::Processor];

    /// Returns what the kernel calls it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Memory => "memory",
            Self::Processes => "pids",
            Self::Processor => "cpu",
        }
    }

    /// Returns what is asked of it.
    pub(crate) fn asked(self, resources: &Resources) -> Option<u64> {
        match self {
            Self::Memory => resources.memory_bytes,
            Self::Processes => resources.processes,
            Self::Processor => resources.cpu_millis,
        }
    }
}

/// Makes the groups that the resources need, as far as this host lets us.
pub(crate) fn create(name: &str, resources: &Resources) -> (ControlGroup, Vec<Unavailable>) {
    let mut group = ControlGroup::default();
    let mut unavailable = Vec::new();
    let wanted: Vec<Controller> = Controller::ALL
        .into_iter()
        .filter(|controller| controller.asked(resources).is_some())
        .collect();
    if wanted.is_empty() {
        return (group, unavailable);
    }
    let (locations, missing) = parent::find(&wanted);
    unavailable.extend(missing);
    for location in locations {
        leftover::remove_once(&location.parent);
        match directory(&location, name, resources) {
            Ok(directory) => group.directories.push(directory),
            Err(failure) => {
                unavailable.extend(location.controllers.iter().map(|controller| Unavailable {
                    controller: *controller,
                    failure: failure.clone(),
                }));
            }
        }
    }
    unavailable.sort_by_key(|one| one.controller);
    (group, unavailable)
}

fn directory(
    location: &GroupParent,
    name: &str,
    resources: &Resources,
) -> Result<GroupDirectory, StepFailure> {
    let path = location.parent.join(leftover::unique_name(name)?);
    fs::create_dir(&path).map_err(|error| failure("mkdir", &path, &error))?;
    let directory = GroupDirectory {
        path,
        version: location.version,
        controllers: location.controllers.clone(),
    };
    let limited = location.controllers.iter().try_for_each(|controller| {
        let Some(value) = controller.asked(resources) else {
            return Ok(());
        };
        limit::set(&directory.path, *controller, location.version, value)
    });
    match limited {
        Ok(()) => Ok(directory),
        Err(failure) => {
            directory.remove();
            Err(failure)
        }
    }
}

impl ControlGroup {
    /// Returns the files into which the launcher writes `0` to join.
    pub(crate) fn group_files(&self) -> Vec<PathBuf> {
        self.directories
            .iter()
            .map(GroupDirectory::group_file)
            .collect()
    }

    /// Tells by which generation of the interface a controller limits, if it does.
    pub(crate) fn holds(&self, controller: Controller) -> Option<CgroupVersion> {
        self.directories
            .iter()
            .find(|directory| directory.controllers.contains(&controller))
            .map(|directory| directory.version)
    }

    /// Returns the controllers that had to refuse something, in the order they are named to people.
    pub(crate) fn met(&self) -> Vec<Controller> {
        let was_hit = |controller: &Controller| {
            self.directories.iter().any(|directory| {
                directory.controllers.contains(controller)
                    && limit::was_hit(&directory.path, *controller, directory.version)
            })
        };
        Controller::ALL.into_iter().filter(was_hit).collect()
    }
}

impl Drop for ControlGroup {
    fn drop(&mut self) {
        for directory in &self.directories {
            directory.remove();
        }
    }
}

impl GroupDirectory {
    /// Joining by the file of single threads takes no lock of the whole machine, and a launcher has one
    /// thread; the second generation has that file for other things.
    fn group_file(&self) -> PathBuf {
        self.path.join(match self.version {
            CgroupVersion::One => "tasks",
            CgroupVersion::Two => "cgroup.procs",
        })
    }

    /// Removes it as soon as the kernel has buried its processes. What cannot be removed is removed by
    /// the next start of Kapi, which finds that the owner is gone.
    fn remove(&self) {
        let until = Instant::now() + REMOVAL_WAIT;
        while let Err(error) = fs::remove_dir(&self.path) {
            let is_busy = Errno::from_io_error(&error) == Some(Errno::BUSY);
            if !is_busy || Instant::now() >= until {
                return;
            }
            std::thread::sleep(REMOVAL_PAUSE);
        }
    }
}

/// Writes a value to a file of a group.
fn write(path: &Path, value: &str) -> Result<(), StepFailure> {
    fs::OpenOptions::new()
        .write(true)
        .open(path)
        .and_then(|mut file| file.write_all(value.as_bytes()))
        .map_err(|error| failure("write", path, &error))
}

fn failure(call: &str, path: &Path, error: &io::Error) -> StepFailure {
    let errno = Errno::from_io_error(error).unwrap_or(Errno::IO);
    StepFailure::new(call, &path.display().to_string(), errno)
}
