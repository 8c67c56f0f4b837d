//! Random schedules of a person who edits, commits, switches branches, rebases and deletes while
//! agents work in launches on branches.
//!
//! The oracle knows neither bases nor layers: the commit of a launch must hold the files that its
//! branch began with and the agent's own edits, and nothing else. Runs the real program.

pub(crate) mod model;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use std::{fs, thread};

use kapi_sys::cancel::Cancel;
use kapi_sys::process::{self, ProcessEnd, ProcessLimits, Program};

use self::model::{Edit, Files, Generator, PERSON};

/// Agents at work at once, edits of each, and steps of the person between two edits.
const AGENTS: usize = 2;
const EDITS: usize = 4;
const STEPS_MAX: usize = 2;
/// Whose words an agent's changes hold.
const AGENT: &str = "agent";
/// The longest that anything is waited for, and how often it is looked at.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_millis(2);

/// A schedule after which something is not as it must be, or that could not be performed.
#[derive(Debug, thiserror::Error)]
#[error("schedule {seed}: {what}\n{steps}")]
pub struct ScheduleFailure {
    /// The seed.
    pub seed: u64,
    /// What is wrong.
    pub what: String,
    /// What was done, one step a line.
    pub steps: String,
}

/// Performs one schedule with the program at `kapi`, in a directory made below `parent`.
///
/// # Errors
/// When a commit is not the base and the agent's own changes, or the person's files were touched.
pub fn run(kapi: &Path, parent: &Path, seed: u64) -> Result<(), ScheduleFailure> {
    let location = tempfile::tempdir_in(parent).map_err(|error| ScheduleFailure {
        seed,
        what: format!("make a directory in {}: {error}", parent.display()),
        steps: String::new(),
    })?;
    let location = location.path();
    let mut schedule = Schedule {
        machine: Machine {
            kapi: kapi.to_path_buf(),
            home: location.join("home"),
            project: location.join("app"),
        },
        random: Generator::new(seed),
        steps: Vec::new(),
    };
    schedule.perform().map_err(|what| ScheduleFailure {
        seed,
        what,
        steps: schedule.steps.join("\n"),
    })
}

/// Where programs run.
#[derive(Debug)]
struct Machine {
    kapi: PathBuf,
    home: PathBuf,
    project: PathBuf,
}

#[derive(Debug)]
struct Schedule {
    machine: Machine,
    random: Generator,
    steps: Vec<String>,
}

/// One agent: what its branch begins with, and what it will do.
#[derive(Debug)]
struct ScheduledAgent {
    id: String,
    base: String,
    files: Files,
    edits: Vec<Edit>,
}

impl Schedule {
    fn perform(&mut self) -> Result<(), String> {
        self.begin()?;
        let mut agents = Vec::new();
        for n in 0..AGENTS {
            agents.push(self.agent(n)?);
        }
        let machine = &self.machine;
        let ends = thread::scope(|scope| {
            let launched: Vec<_> = agents
                .iter()
                .map(|agent| scope.spawn(move || machine.launch(agent)))
                .collect();
            let person = Person {
                machine,
                random: &mut self.random,
                steps: &mut self.steps,
            };
            let done = person.act(&agents);
            let ends = launched.into_iter().map(|launched| match launched.join() {
                Ok(end) => end,
                Err(panic) => std::panic::resume_unwind(panic),
            });
            let ends: Result<Vec<()>, String> = ends.collect();
            done.and(ends)
        });
        ends?;
        for agent in &agents {
            self.judge(agent)?;
        }
        let touched = self.machine.files_with(AGENT)?;
        if touched.is_empty() {
            Ok(())
        } else {
            Err(format!("an agent wrote to the person's {touched}"))
        }
    }

    /// Makes the repository: some files on a few branches.
    fn begin(&mut self) -> Result<(), String> {
        for dir in [&self.machine.home, &self.machine.project] {
            fs::create_dir(dir).map_err(|error| format!("create {}: {error}", dir.display()))?;
        }
        let machine = &self.machine;
        machine.git(&["init", "--quiet", "--initial-branch", "main"])?;
        for branch in ["main", "other", "third"] {
            if branch != "main" {
                machine.git(&["checkout", "--quiet", "-b", branch])?;
            }
            let edits: Vec<Edit> = (0..6).map(|_| self.random.edit(PERSON)).collect();
            let script: String = edits.iter().map(Edit::script).collect();
            let script = format!("{script}echo {branch} > always\n");
            machine.shell(&script)?;
            machine.commit_all(branch)?;
            self.steps
                .push(format!("person on {branch}: {}", one_line(&script)));
        }
        machine.git(&["checkout", "--quiet", "main"])?;
        Ok(())
    }

    /// Decides about an agent: where its branch begins, and what it does.
    fn agent(&mut self, n: usize) -> Result<ScheduledAgent, String> {
        let branches = ["main", "other", "third"];
        let from = branches
            .get(self.random.below(branches.len()))
            .unwrap_or(&"main");
        let base = self.machine.git(&["rev-parse", from])?;
        let files = self.machine.files_of(&base)?;
        let edits: Vec<Edit> = (0..EDITS).map(|_| self.random.edit(AGENT)).collect();
        let id = format!("agent-{n}");
        let script: String = edits.iter().map(Edit::script).collect();
        self.steps
            .push(format!("{id} from {from}: {}", one_line(&script)));
        Ok(ScheduledAgent {
            id,
            base,
            files,
            edits,
        })
    }

    /// Compares the commit of a launch with the base and the agent's edits.
    fn judge(&self, agent: &ScheduledAgent) -> Result<(), String> {
        let mut expected = agent.files.clone();
        for edit in &agent.edits {
            edit.apply(&mut expected);
        }
        let id = &agent.id;
        let tip = self.machine.git(&["rev-parse", id])?;
        let found = self.machine.files_of(&tip)?;
        if found != expected {
            let differs: Vec<String> = found
                .iter()
                .filter(|(path, content)| expected.get(*path) != Some(*content))
                .map(|(path, _)| format!("has {path}"))
                .chain(
                    expected
                        .keys()
                        .filter(|path| !found.contains_key(*path))
                        .map(|path| format!("lacks {path}")),
                )
                .collect();
            return Err(format!("{id}: the commit {}", differs.join(", ")));
        }
        let parent = match tip == agent.base {
            true => tip,
            false => self.machine.git(&["rev-parse", &format!("{id}^")])?,
        };
        if parent == agent.base {
            Ok(())
        } else {
            Err(format!(
                "{id}: the commit is on {parent}, not on {}",
                agent.base
            ))
        }
    }
}

/// The person at the machine, while agents work.
struct Person<'a> {
    machine: &'a Machine,
    random: &'a mut Generator,
    steps: &'a mut Vec<String>,
}

impl Person<'_> {
    /// Does something before each edit of an agent, in an order drawn by lot; then lets all go.
    fn act(mut self, agents: &[ScheduledAgent]) -> Result<(), String> {
        let mut done = vec![0; agents.len()];
        let acted = self.steps(agents, &mut done);
        // Whatever happened, nobody waits for ever.
        for agent in agents {
            for n in 0..=EDITS {
                self.machine.signal(&agent.id, &format!("go-{n}"));
            }
        }
        acted
    }

    fn steps(&mut self, agents: &[ScheduledAgent], done: &mut [usize]) -> Result<(), String> {
        for agent in agents {
            self.machine.wait(&agent.id, "began")?;
        }
        while done.iter().any(|n| *n < EDITS) {
            for _ in 0..=self.random.below(STEPS_MAX) {
                let script = self.random.step();
                self.steps.push(format!("person: {}", one_line(&script)));
                self.machine.shell(&script)?;
            }
            let n = self.random.below(agents.len());
            let (Some(agent), Some(count)) = (agents.get(n), done.get_mut(n)) else {
                continue;
            };
            if *count < EDITS {
                self.machine.signal(&agent.id, &format!("go-{count}"));
                self.machine.wait(&agent.id, &format!("did-{count}"))?;
                self.steps.push(format!("{} edits", agent.id));
                *count += 1;
            }
        }
        Ok(())
    }
}

impl Machine {
    /// Launches an agent whose edits each wait for a signal.
    fn launch(&self, agent: &ScheduledAgent) -> Result<(), String> {
        let mut script = String::from(": > \"$HOME/began\"\n");
        for (n, edit) in agent.edits.iter().enumerate() {
            let wait = format!("while [ ! -e \"$HOME/go-{n}\" ]; do sleep 0.002; done\n");
            let done = format!(": > \"$HOME/did-{n}\"\n");
            script += &[wait, edit.script(), done].concat();
        }
        let command = format!("command:{script}");
        let project = self.project.display().to_string();
        let args = [
            "launch",
            &agent.id,
            &project,
            "--task",
            "edit",
            "--agent",
            &command,
            "--branch",
            &agent.id,
            "--base-branch",
            &agent.base,
            "--json",
        ];
        self.run(&self.kapi, &args).map(drop)
    }

    fn private_home(&self, id: &str) -> Option<PathBuf> {
        let projects = fs::read_dir(self.home.join(".ilchul/sandboxes")).ok()?;
        let mut homes = projects
            .flatten()
            .map(|project| project.path().join(id).join("home"));
        homes.find(|home| home.is_dir())
    }

    fn signal(&self, id: &str, name: &str) {
        if let Some(home) = self.private_home(id) {
            drop(fs::File::create(home.join(name)));
        }
    }

    fn wait(&self, id: &str, name: &str) -> Result<(), String> {
        let began = Instant::now();
        while !self
            .private_home(id)
            .is_some_and(|home| home.join(name).exists())
        {
            if began.elapsed() > PATIENCE {
                return Err(format!("{id} did not come to {name}"));
            }
            thread::sleep(LOOK);
        }
        Ok(())
    }

    /// Returns the files of a commit with their modes and the ids of their contents.
    fn files_of(&self, commit: &str) -> Result<Files, String> {
        let listed = self.git(&["ls-tree", "-r", "-z", commit])?;
        let mut files = BTreeMap::new();
        for line in listed.split('\0').filter(|line| !line.is_empty()) {
            let Some((about, path)) = line.split_once('\t') else {
                continue;
            };
            let id = about.rsplit(' ').next().unwrap_or_default();
            files.insert(path.to_owned(), self.git(&["cat-file", "blob", id])?);
        }
        Ok(files)
    }

    /// Returns the person's files that hold a word.
    fn files_with(&self, word: &str) -> Result<String, String> {
        self.shell(&format!("grep -rl --exclude-dir=.git -e {word} . || true"))
    }

    fn commit_all(&self, message: &str) -> Result<(), String> {
        self.git(&["add", "--all"])?;
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message])?;
        Ok(())
    }

    fn git(&self, args: &[&str]) -> Result<String, String> {
        self.run(&self.program("git")?, args)
    }

    fn shell(&self, script: &str) -> Result<String, String> {
        self.run(Path::new("/bin/sh"), &["-euc", script])
    }

    fn program(&self, name: &str) -> Result<PathBuf, String> {
        let path = process::environment().remove(OsStr::new("PATH"));
        let found = process::find_in_path(OsStr::new(name), &path.unwrap_or_default());
        found.ok_or_else(|| format!("find {name}"))
    }

    fn run(&self, path: &Path, args: &[&str]) -> Result<String, String> {
        let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
        let path_variable = process::environment().remove(OsStr::new("PATH"));
        env.insert("PATH".into(), path_variable.unwrap_or_default());
        env.insert("HOME".into(), self.home.clone().into());
        env.insert("GIT_CONFIG_NOSYSTEM".into(), "1".into());
        for role in ["AUTHOR", "COMMITTER"] {
            env.insert(format!("GIT_{role}_NAME").into(), "Person".into());
            env.insert(
                format!("GIT_{role}_EMAIL").into(),
                "person@example.invalid".into(),
            );
        }
        let program = Program {
            path: path.to_path_buf(),
            args: args.iter().map(OsString::from).collect(),
            env,
            cwd: self.project.clone(),
            stdin: Vec::new(),
            pass_fds: Vec::new(),
            limits: ProcessLimits {
                deadline: PATIENCE,
                idle: None,
                tail_bytes_max: 4 << 20,
                line_bytes_max: 4096,
            },
        };
        let finished = process::run(program, &Cancel::new(), &mut |_line| {});
        let finished = finished.map_err(|error| format!("start {}: {error}", path.display()))?;
        let said = String::from_utf8_lossy(&finished.stdout.tail).into_owned();
        if finished.end == ProcessEnd::Exited(0) {
            return Ok(said.trim_end().to_owned());
        }
        let complaint = String::from_utf8_lossy(&finished.stderr.tail).into_owned();
        let args = args.join(" ");
        Err(format!(
            "{} {args}: {:?}: {said}{complaint}",
            path.display(),
            finished.end
        ))
    }
}

fn one_line(script: &str) -> String {
    script.trim().replace('\n', "; ")
}
