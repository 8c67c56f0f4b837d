//! Running an agent: its home, its view of git, its stream, its end.
//!
//! An attempt that was cut off is done again from the turn's start; what it had made is kept
//! under a ref of its own first.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

use kapi_agent::agent::Kind;
use kapi_agent::launch::{self, HomeFile, Host, Launch, Purpose, Turn};
use kapi_agent::settings::Settings;
use kapi_agent::stream::{StreamEvent, StreamParser};
use kapi_core::goal::contract::SandboxLevel;
use kapi_core::goal::effect::{AgentTask, Effect};
use kapi_core::goal::outcome::{AgentRun, Failure, Outcome};
use kapi_engine::world::{Activity, Watch};
use kapi_git::candidate::CandidatePlan;
use kapi_git::workspace::{Origin, Workspace};
use kapi_sandbox::expose;
use kapi_sandbox::spec::{Access, Network};
use kapi_sys::process::{self, End, Line};

use crate::book::Book;
use crate::confine::{self, Cell, KAPI_INSIDE, Payload};
use crate::failure;
use crate::real::RealWorld;
use crate::run_dir::{RunDir, Transcript};
use crate::workshop::{self, ShownAt, Workshop};

/// The variable that marks every process of a run.
pub(crate) const RUN_ID_VARIABLE: &str = "KAPI_RUN_ID";

/// An agent, ready to be asked something.
pub(crate) struct Asked<'a> {
    pub(crate) kind: &'a Kind,
    pub(crate) settings: &'a Settings,
    pub(crate) prompt: &'a str,
    pub(crate) session: Option<&'a str>,
    pub(crate) turn: u32,
    pub(crate) run_id: &'a str,
    pub(crate) purpose: Purpose,
    pub(crate) git_env: Vec<(OsString, OsString)>,
}

impl RealWorld<'_> {
    pub(crate) fn run_agent(
        &self,
        effect: &Effect,
        task: &AgentTask,
        watch: &Watch<'_>,
    ) -> Result<Outcome, Failure> {
        let kind = Kind::parse(&task.agent).map_err(|error| failure::agent(&error))?;
        let settings = self.book.settings(&kind);
        let workshop = Workshop::open(&self.book, &self.place.project, watch.cancel)?;
        let workspace = workshop.workspace(&self.place, &task.branch, &task.base)?;
        let run_id = run_id(effect);
        let run_dir = RunDir::open(&self.place.runs, &run_id)?;
        let was_cut_off = run_dir.mark_started()?;
        if was_cut_off || workspace.origin == Origin::Rebuilt {
            rewind(&workshop, &workspace, effect, task)?;
        }
        let view_dir = self.place.scratch.join("agent-git");
        let start = workshop::commit_id(&task.start_commit)?;
        let shown_at = ShownAt::of(task.sandbox, &workspace.path);
        let (git_view, git_env) = workshop.git_view(&view_dir, &workspace, &start, shown_at)?;
        let home = self.place.scratch.join(format!("home-{}", kind.name()));
        let cell = Cell {
            level: task.sandbox,
            workspace: &workspace.path,
            workspace_access: Access::ReadWrite,
            home: &home,
            git_view: Some(git_view),
            mounts: Vec::new(),
            network: Network::Host,
            deadline: Duration::from_millis(task.deadline_ms),
            idle: None,
        };
        let prompt = if was_cut_off {
            format!("{CUT_OFF_NOTE}\n\n{}", task.prompt)
        } else {
            task.prompt.clone()
        };
        let asked = Asked {
            kind: &kind,
            settings: &settings,
            prompt: &prompt,
            session: task.session.as_deref(),
            turn: task.turn,
            run_id: &run_id,
            purpose: Purpose::Work,
            git_env,
        };
        ask(&self.book, cell, &asked, &run_dir, watch).map(|(run, end)| outcome_of(run, end))
    }
}

const CUT_OFF_NOTE: &str = "Note: an earlier attempt at this turn was cut off. The working \
     directory has been put back to what it was before that attempt.";

/// Returns the id of the run that performs an effect.
pub(crate) fn run_id(effect: &Effect) -> String {
    format!("{}-{}", effect.goal, effect.id)
}

fn outcome_of(run: AgentRun, end: End) -> Outcome {
    if end == End::Cancelled {
        Outcome::Cancelled {
            usage: run.usage,
            session: run.session,
        }
    } else {
        Outcome::Agent(run)
    }
}

/// Keeps what a cut-off attempt made, then puts the workspace back to the turn's start.
fn rewind(
    workshop: &Workshop,
    workspace: &Workspace,
    effect: &Effect,
    task: &AgentTask,
) -> Result<(), Failure> {
    let known = workshop::tree_id(&task.start_tree)?;
    let plan = CandidatePlan {
        name: workshop::ref_part(&format!("rescue-{}", effect.id))?,
        message: format!(
            "rescue: cut-off attempt {} of goal {}\n",
            effect.id, effect.goal
        ),
        author: workshop::author(),
        at_unix_seconds: 0,
    };
    workshop
        .repository
        .rescue(workspace, &plan, &known)
        .map_err(|error| failure::plain(&error))?;
    let start = workshop::commit_id(&task.start_commit)?;
    workshop
        .repository
        .reset_workspace(workspace, &start)
        .map_err(|error| failure::plain(&error))
}

/// Asks an agent something in a cell and returns what came of it.
pub(crate) fn ask(
    book: &Book,
    mut cell: Cell<'_>,
    asked: &Asked<'_>,
    run_dir: &RunDir,
    watch: &Watch<'_>,
) -> Result<(AgentRun, End), Failure> {
    run_dir.keep("prompt.md", asked.prompt.as_bytes())?;
    let prompt_file = prompt_file_seen(&cell, run_dir);
    let turn = Turn {
        prompt: asked.prompt,
        prompt_file: &prompt_file,
        session: asked.session,
        turn: asked.turn,
        run_id: asked.run_id,
        purpose: asked.purpose,
        home: &cell.home_seen(book),
        workspace: &cell.workspace_seen(),
    };
    let host = Host { env: &book.env };
    let launch = launch::launch(asked.kind, asked.settings, &host, &turn)
        .map_err(|error| failure::agent(&error))?;
    for note in &launch.notes {
        (watch.notice)(Activity::Note { text: note.clone() });
    }
    furnish_home(cell.home, &launch, book)?;
    cell.mounts
        .push(confine::read_only(&run_dir.file("prompt.md"), &prompt_file));
    cell.idle = launch.idle_ms.map(Duration::from_millis);
    let payload = payload(book, asked, &launch)?;
    let mut parser = StreamParser::new(asked.kind, asked.session);
    let mut transcript = run_dir.transcript()?;
    let finished = cell.run(book, payload, watch.cancel, &mut |line| {
        let events = match line {
            Line::Stdout(bytes) => parser.stdout_line(bytes),
            Line::Stderr(bytes) => parser.stderr_line(bytes),
        };
        for event in events {
            take(event, &mut transcript, watch);
        }
    })?;
    run_dir.keep("stderr.txt", finished.stderr.text().as_bytes())?;
    let run = parser.finish(
        finished.end,
        &finished.stderr.text(),
        &finished.stdout.text(),
    );
    Ok((run, finished.end))
}

fn prompt_file_seen(cell: &Cell<'_>, run_dir: &RunDir) -> PathBuf {
    match cell.level {
        SandboxLevel::Native => Path::new(KAPI_INSIDE).join("prompt.md"),
        SandboxLevel::None => run_dir.file("prompt.md"),
    }
}

/// Passes one stream event on and keeps it in the transcript.
fn take(event: StreamEvent, transcript: &mut Transcript, watch: &Watch<'_>) {
    let line = match &event {
        StreamEvent::Session(id) => serde_json::json!({"type": "session", "id": id}),
        StreamEvent::Tool { name, detail } => {
            serde_json::json!({"type": "tool", "name": name, "detail": detail})
        }
        StreamEvent::Text(text) => serde_json::json!({"type": "text", "text": text}),
        StreamEvent::Used(usage) => serde_json::json!({"type": "used", "usage": usage}),
        StreamEvent::Retrying { message } => {
            serde_json::json!({"type": "retrying", "message": message})
        }
    };
    // A full disk must not end an agent's turn: the transcript then ends early.
    drop(transcript.add(&line.to_string()));
    match event {
        StreamEvent::Session(_) => {}
        StreamEvent::Tool { name, detail } => (watch.notice)(Activity::Tool { name, detail }),
        StreamEvent::Text(text) => (watch.notice)(Activity::Text { text }),
        StreamEvent::Used(usage) => (watch.notice)(Activity::Used(usage)),
        StreamEvent::Retrying { message } => (watch.notice)(Activity::Note { text: message }),
    }
}

fn payload(book: &Book, asked: &Asked<'_>, launch: &Launch) -> Result<Payload, Failure> {
    let program = if launch.program == launch::SELF_EXE {
        book.self_exe.clone()
    } else {
        find_program(book, asked.kind, &launch.program)?
    };
    let mut env: BTreeMap<OsString, OsString> = asked.git_env.iter().cloned().collect();
    env.insert(RUN_ID_VARIABLE.into(), asked.run_id.into());
    env.extend(
        launch
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into())),
    );
    Ok(Payload {
        program,
        args: launch.args.iter().map(OsString::from).collect(),
        env,
        stdin: launch.stdin.clone(),
    })
}

fn find_program(book: &Book, kind: &Kind, name: &str) -> Result<PathBuf, Failure> {
    let path = Path::new(name);
    let found = if path.is_absolute() {
        Some(path.to_path_buf()).filter(|path| path.is_file())
    } else {
        process::find_in_path(OsStr::new(name), &book.path_variable())
    };
    found.ok_or_else(|| Failure {
        message: format!("find the program of agent {}: {name}", kind.name()),
        hint: Some(format!(
            "install it, or set `command` under [agents.{}] in the configuration; `kapi doctor` \
             lists what is found.",
            kind.name()
        )),
    })
}

/// Puts the files a CLI wants into its private home.
fn furnish_home(home: &Path, launch: &Launch, book: &Book) -> Result<(), Failure> {
    fs::create_dir_all(home).map_err(|error| failure::file("create", home, &error))?;
    for file in &launch.files {
        write_home_file(home, file)?;
    }
    for relative in &launch.login_files {
        let from = book.home.join(relative);
        let to = home.join(relative);
        if from.is_file() && !to.exists() {
            let content = fs::read(&from).map_err(|error| failure::file("read", &from, &error))?;
            write_home_file(
                home,
                &HomeFile {
                    path: relative.clone(),
                    content,
                    mode: 0o600,
                },
            )?;
        }
    }
    Ok(())
}

fn write_home_file(home: &Path, file: &HomeFile) -> Result<(), Failure> {
    use std::io::Write as _;
    let path = home_path(home, &file.path)?;
    if let Some(parent) = path.parent() {
        fs::create_dir_all(parent).map_err(|error| failure::file("create", parent, &error))?;
    }
    let failed = |error: std::io::Error| failure::file("write", &path, &error);
    // A new file each time: the agent may have left a link here that leads elsewhere.
    match fs::remove_file(&path) {
        Ok(()) => {}
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => return Err(failed(error)),
    }
    let mut options = fs::OpenOptions::new();
    let mut handle = options
        .write(true)
        .create_new(true)
        .mode(file.mode)
        .open(&path)
        .map_err(failed)?;
    handle.write_all(&file.content).map_err(failed)
}

/// Refuses a path whose parents the agent turned into links: they may lead out of the home.
fn home_path(home: &Path, relative: &Path) -> Result<PathBuf, Failure> {
    let mut path = home.to_path_buf();
    for component in relative.components() {
        if path.is_symlink() || !matches!(component, Component::Normal(_)) {
            return Err(Failure {
                message: format!(
                    "write {} into the agent's home: it leads out of it",
                    relative.display()
                ),
                hint: Some(format!("remove {} and resume.", home.display())),
            });
        }
        path.push(component);
    }
    Ok(path)
}

/// Checks that an agent could be started: known, with credentials, installed, and its paths exposable.
///
/// # Errors
/// With what is missing and what to do about it.
pub fn check_agent(book: &Book, reference: &str, level: SandboxLevel) -> Result<Checked, Failure> {
    let kind = Kind::parse(reference).map_err(|error| failure::agent(&error))?;
    let nowhere = Path::new("/");
    let turn = Turn {
        prompt: "",
        prompt_file: nowhere,
        session: None,
        turn: 1,
        run_id: "check",
        purpose: Purpose::Work,
        home: nowhere,
        workspace: nowhere,
    };
    let host = Host { env: &book.env };
    let launch = launch::launch(&kind, &book.settings(&kind), &host, &turn)
        .map_err(|error| failure::agent(&error))?;
    let checked = Checked {
        reports_usd: launch.reports_usd,
    };
    if launch.program == launch::SELF_EXE {
        return Ok(checked);
    }
    let program = find_program(book, &kind, &launch.program)?;
    if level == SandboxLevel::Native {
        expose::expose(&program, &book.path_variable(), &book.home)
            .map_err(|error| failure::sandbox(&error))?;
    }
    Ok(checked)
}

/// What is known of an agent that could be started.
#[derive(Debug, Clone, Copy)]
pub struct Checked {
    /// Whether it reports what it costs.
    pub reports_usd: bool,
}
