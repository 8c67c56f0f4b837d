//! A project, what was changed in it, and what is applied to it.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use kapi_git::apply::{
    ApplyError, ApplyOffer, ApplyPlan, BaseState, ByteSource, Moment, OnConflict, PathVerdict,
    SandboxState, apply, preview,
};
use kapi_git::command::Git;
use tempfile::TempDir;

use crate::fixture::{everything, git, write};

/// A project, an upper layer, and the moment between the two.
pub(crate) struct Site {
    temp: TempDir,
    pub(crate) git: Git,
    pub(crate) links_out: BTreeSet<PathBuf>,
    pub(crate) select: Vec<String>,
    pub(crate) on_conflict: OnConflict,
}

impl Site {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let site = Self {
            temp: TempDir::new().expect("a temporary directory"),
            git: git(),
            links_out: BTreeSet::new(),
            select: Vec::new(),
            on_conflict: OnConflict::Refuse,
        };
        for dir in ["project", "upper", "before"] {
            fs::create_dir(site.path(dir)).expect("create");
        }
        for (path, text) in files {
            write(&site.path("project").join(path), text);
            write(&site.path("before").join(path), text);
        }
        site.await_tick("began");
        site
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.temp.path().join(name)
    }

    pub(crate) fn project(&self, name: &str) -> PathBuf {
        self.path("project").join(name)
    }

    /// Makes a file whose change time is after that of everything so far.
    pub(crate) fn await_tick(&self, name: &str) {
        let last = moment(&self.newest());
        loop {
            write(&self.path(name), "");
            if moment(&self.path(name)) > last {
                return;
            }
        }
    }

    fn newest(&self) -> PathBuf {
        let marker = self.path("newest");
        write(&marker, "x");
        marker
    }

    pub(crate) fn began(&self) -> Moment {
        moment(&self.path("began"))
    }

    pub(crate) fn source(&self, path: &str) -> ByteSource {
        ByteSource::File {
            root: self.path("upper"),
            path: path.into(),
        }
    }

    pub(crate) fn as_of(&self, path: &str) -> BaseState {
        let ancestor = self
            .path("before")
            .join(path)
            .is_file()
            .then(|| ByteSource::File {
                root: self.path("before"),
                path: path.into(),
            });
        BaseState::AsOf {
            moment: self.began(),
            ancestor,
        }
    }

    /// An agent writes a file that the project has.
    pub(crate) fn changed(&self, path: &str, text: &str) -> ApplyOffer {
        ApplyOffer {
            old: self.as_of(path),
            ..self.added(path, text)
        }
    }

    /// An agent writes a file that the project lacks.
    pub(crate) fn added(&self, path: &str, text: &str) -> ApplyOffer {
        write(&self.path("upper").join(path), text);
        ApplyOffer {
            path: path.into(),
            old: BaseState::Absent,
            new: SandboxState::File {
                source: self.source(path),
                mode: 0o644,
            },
        }
    }

    pub(crate) fn removed(&self, path: &str) -> ApplyOffer {
        self.offer(path, self.as_of(path), SandboxState::Absent)
    }

    pub(crate) fn offer(&self, path: &str, old: BaseState, new: SandboxState) -> ApplyOffer {
        ApplyOffer {
            path: path.into(),
            old,
            new,
        }
    }

    pub(crate) fn link(&self, path: &str, target: &str) -> ApplyOffer {
        let target = OsString::from(target);
        self.offer(path, BaseState::Absent, SandboxState::Link { target })
    }

    pub(crate) fn apply(&self, offers: &[ApplyOffer]) -> Result<Vec<String>, ApplyError> {
        self.with(offers, |plan| {
            let shown = preview(plan);
            let applied = apply(plan)?;
            assert_eq!(shown.expect("preview"), applied.preview, "the dry run lied");
            Ok(lines(&applied.preview.verdicts))
        })
    }

    pub(crate) fn preview(&self, offers: &[ApplyOffer]) -> Vec<String> {
        self.with(offers, |plan| {
            lines(&preview(plan).expect("preview").verdicts)
        })
    }

    pub(crate) fn with<T>(
        &self,
        offers: &[ApplyOffer],
        act: impl FnOnce(&ApplyPlan<'_>) -> T,
    ) -> T {
        let (project, work) = (self.path("project"), self.path("work"));
        act(&ApplyPlan {
            git: &self.git,
            repository: None,
            project: &project,
            work: &work,
            offers,
            select: &self.select,
            links_out: &self.links_out,
            on_conflict: self.on_conflict,
        })
    }

    /// Checks that nothing happens, and returns what is in the way.
    #[track_caller]
    pub(crate) fn refuses(&self, offers: &[ApplyOffer]) -> Vec<String> {
        let before = everything(&self.path("project"));
        let error = self.apply(offers).expect_err("an obstacle");
        assert_eq!(everything(&self.path("project")), before);
        let ApplyError::Obstacles { preview } = error else {
            panic!("{error}")
        };
        let obstacles = preview.verdicts.into_iter();
        lines(
            &obstacles
                .filter(|(_, verdict)| verdict.is_obstacle())
                .collect::<Vec<_>>(),
        )
    }

    #[track_caller]
    pub(crate) fn assert_clean(&self) {
        let mut left: Vec<String> = fs::read_dir(self.path("work"))
            .expect("list")
            .map(|entry| {
                entry
                    .expect("entry")
                    .file_name()
                    .to_string_lossy()
                    .into_owned()
            })
            .collect();
        left.retain(|name| name != "lock");
        assert_eq!(left, [""; 0], "left in the work directory");
    }
}

fn moment(path: &Path) -> Moment {
    let found = fs::symlink_metadata(path).expect("inspect");
    Moment {
        seconds: found.ctime(),
        nanoseconds: found.ctime_nsec(),
    }
}

pub(crate) fn lines(verdicts: &[(PathBuf, PathVerdict)]) -> Vec<String> {
    let line = |(path, verdict): &(PathBuf, PathVerdict)| format!("{} {verdict:?}", path.display());
    verdicts.iter().map(line).collect()
}

pub(crate) fn mode(path: &Path) -> u32 {
    fs::symlink_metadata(path)
        .expect("inspect")
        .permissions()
        .mode()
        & 0o7777
}
