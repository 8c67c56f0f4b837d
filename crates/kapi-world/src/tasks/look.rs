//! A command that a condition names: in a sandbox, on the project as it is, which it cannot change.
//!
//! Its exit code is all that is taken of it. There is no network.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kapi_core::goal::contract::{NetworkMode, SandboxLevel};
use kapi_core::goal::outcome::Failure;
use kapi_core::kernel::condition::Answer;
use kapi_core::kernel::task::Task;
use kapi_engine::kernel::worker::Hands;
use kapi_engine::world::{Activity, Watch};
use kapi_git::owned_dir;
use kapi_sandbox::spec::Access;
use kapi_sys::process::End;

use super::Performer;
use crate::asking::RUN_ID_VARIABLE;
use crate::confine::{self, Cell, Payload, WORKSPACE_INSIDE, WorksAt};
use crate::doors::Doors;
use crate::doors::serve::Served;
use crate::launching::place::make_private;
use crate::run_dir::RunDir;
use crate::{failure, home};

/// Where Kapi keeps its own state of a project.
const STATE: &str = ".ilchul";

/// Runs a command and says how it ended.
pub(super) fn command(
    performer: &Performer<'_>,
    (task, hands): (&Task, &Hands<'_>),
    (line, timeout_ms): (&str, u64),
) -> Result<Answer, Failure> {
    if performer.setting.level == SandboxLevel::None {
        return Ok(Answer::Unknown {
            why: "without isolation nothing keeps it from changing the project".to_owned(),
        });
    }
    let id = Performer::sandbox_id(task, hands).map_err(|_| Failure {
        message: "name its sandbox".to_owned(),
        hint: None,
    })?;
    let place = performer
        .setting
        .sandboxes
        .place(&performer.setting.project_key, &id);
    let made = make_private(&place.dir());
    made.map_err(|error| Failure {
        message: error.message,
        hint: error.hint,
    })?;
    let dir = place.dir().join("look");
    let end = look_in(performer, (task, hands), &dir, (line, timeout_ms));
    owned_dir::wipe(&dir).map_err(|error| failure::plain(&error))?;
    // Only an empty one goes: a run that was skipped leaves nothing.
    drop(fs::remove_dir(place.dir()));
    Ok(match end? {
        End::Exited(code) => Answer::Exit { code },
        End::Signaled(signal) => Answer::Exit { code: 128 + signal },
        End::DeadlinePassed | End::IdlePassed => Answer::TimedOut,
        End::Cancelled => Answer::Unknown {
            why: "it was cut off".to_owned(),
        },
    })
}

fn look_in(
    performer: &Performer<'_>,
    (task, hands): (&Task, &Hands<'_>),
    dir: &Path,
    (line, timeout_ms): (&str, u64),
) -> Result<End, Failure> {
    owned_dir::wipe(dir).map_err(|error| failure::plain(&error))?;
    let root = performer.project.layout.root();
    let mut mounts = Vec::new();
    if root.join(STATE).is_dir() {
        let blank = dir.join("blank");
        fs::create_dir_all(&blank).map_err(|error| failure::file("create", &blank, &error))?;
        let inside = Path::new(WORKSPACE_INSIDE).join(STATE);
        mounts.push(confine::read_only(&blank, &inside));
    }
    let name = format!(
        "look-{}-{}-{}",
        std::process::id(),
        task.id,
        hands.hold().fence
    );
    let level = performer.setting.level;
    let cell = Cell {
        name: &name,
        level,
        workspace: root,
        workspace_access: Access::ReadOnly,
        project: Some(root),
        works_at: WorksAt::Project,
        home: &home::make_anew(&dir.join("home"))?,
        git_view: None,
        mounts,
        deadline: Duration::from_millis(timeout_ms),
        idle: None,
    };
    let env = [
        ("GIT_CONFIG_COUNT", "1"),
        ("GIT_CONFIG_KEY_0", "safe.directory"),
        ("GIT_CONFIG_VALUE_0", "*"),
        ("GIT_OPTIONAL_LOCKS", "0"),
    ];
    let env = env.map(|(name, value)| (name.into(), value.into()));
    let mut env = BTreeMap::from(env);
    env.insert(RUN_ID_VARIABLE.into(), name.clone().into());
    let payload = Payload {
        program: PathBuf::from("/bin/sh"),
        args: vec!["-c".into(), line.into()],
        env,
        stdin: Vec::new(),
    };
    let notice = |activity: Activity| (performer.notice)(task.id, activity);
    let watch = Watch {
        cancel: hands.cancel(),
        notice: &notice,
    };
    let doors = Doors::new(level, NetworkMode::None, &performer.book.grant)?;
    let run_dir = RunDir::open(dir, "run")?;
    let served = Served::new(&doors, &watch, &run_dir)?;
    let ran = cell.run(&performer.book, payload, &served, &mut |_| {})?;
    Ok(ran.finished.end)
}
