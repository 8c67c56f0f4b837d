//! A person's machine in a directory: a home of its own, an empty environment, a fresh repository
//! and the built binary.
//!
//! Knows how to run things and to look at what they left; what should be there is each test's
//! affair.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use std::{fs, iter, thread};

use kapi_sys::alarm::{Alarm, WakeSources};
use kapi_sys::clock::{Clock as _, StepClock, SystemClock};
use kapi_sys::process::process_name;
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Output, Run, Running, finish, parse};

/// The task that the tests give.
pub(crate) const TASK: &str = "make the answer right";
/// The branch that the first goal with that task gets.
pub(crate) const BRANCH: &str = "feat/goal-make-answer-right";
/// The id that the first goal with that task gets.
pub(crate) const FIRST: &str = "001-make-answer-right";
/// The longest that anything is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(300);
const DAY_MS: i64 = 86_400_000;
/// How many cases of one test are under way at once.
const CASES_AT_ONCE: usize = 4;
/// The pauses between two looks at a condition that nobody tells of: looking takes time from what is
/// waited for, so they grow with the time that has passed.
const LOOK_MIN: Duration = Duration::from_millis(2);
const LOOK_MAX: Duration = Duration::from_millis(50);
/// The longest until what should be told of is looked at all the same.
const UNTOLD_MAX: Duration = Duration::from_millis(500);

/// The verify script of every repository: the answer must be 42.
pub(crate) const TEST_SH: &str = "\
[ \"$(cat answer.txt)\" = 42 ] || { echo \"the answer is $(cat answer.txt), not 42\"; exit 1; }
echo the answer is right
";

/// A machine.
pub(crate) struct Environment {
    root: TempDir,
    vars: BTreeMap<String, String>,
    launcher: Vec<String>,
}

impl Environment {
    /// Makes a machine with a repository whose answer is wrong.
    pub(crate) fn new() -> Self {
        Self::started_with(&[], None)
    }

    /// Makes the same machine, where everything is started through a launcher and the directories
    /// belong to `owner`.
    pub(crate) fn started_with(launcher: &[&str], owner: Option<u32>) -> Self {
        let env = Self::with_launcher(launcher, owner);
        env.write("answer.txt", "wrong\n");
        env.write("test.sh", TEST_SH);
        env.commit_all("base");
        env
    }

    /// Makes a machine with an empty repository.
    pub(crate) fn bare() -> Self {
        Self::with_launcher(&[], None)
    }

    fn with_launcher(launcher: &[&str], owner: Option<u32>) -> Self {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let root = tempfile::Builder::new()
            .prefix("kapi-")
            .tempdir_in(tmp)
            .unwrap();
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o755)).unwrap();
        let path = std::env::var("PATH").unwrap();
        let mut env = Self {
            root,
            vars: BTreeMap::new(),
            launcher: launcher.iter().map(|&word| word.to_owned()).collect(),
        };
        let home = env.home().display().to_string();
        env.set("PATH", &path);
        env.set("HOME", &home);
        for dir in [env.home(), env.repository()] {
            fs::create_dir(&dir).unwrap();
            chown(&dir, owner, owner).unwrap();
        }
        env.git(&["init", "--quiet", "--initial-branch", "main"]);
        env
    }

    /// Sets a variable for everything that is started from now on.
    pub(crate) fn set(&mut self, name: &str, value: &str) {
        self.vars.insert(name.to_owned(), value.to_owned());
    }

    /// Makes it noon, UTC, for everything that is started from now on, so that no day ends meanwhile;
    /// returns the same time.
    pub(crate) fn at_noon(&mut self) -> StepClock {
        let now_ms = SystemClock.now_ms();
        let noon_ms = now_ms - now_ms.rem_euclid(DAY_MS) + DAY_MS / 2;
        let file = self.root().join("clock");
        write(&file, format!("{:+}", noon_ms - now_ms));
        self.set("KAPI_TEST_CLOCK", &file.display().to_string());
        StepClock::new(noon_ms)
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root().join("home")
    }

    pub(crate) fn repository(&self) -> PathBuf {
        self.root().join("app")
    }

    /// Returns a text that every process of this machine carries in its environment.
    pub(crate) fn marker(&self) -> String {
        self.home().display().to_string()
    }

    pub(crate) fn goal_dir(&self, id: &str) -> PathBuf {
        self.repository().join(".ilchul").join("goals").join(id)
    }

    pub(crate) fn log(&self, id: &str) -> PathBuf {
        self.goal_dir(id).join("events.jsonl")
    }

    /// Writes a file of the repository.
    pub(crate) fn write(&self, name: &str, content: &str) {
        write(&self.repository().join(name), content);
    }

    /// Puts a file into its place at once: whoever follows it never sees half of it.
    pub(crate) fn place(&self, path: &Path, content: impl AsRef<[u8]>) {
        let beside = self.root().join("beside");
        write(&beside, content);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::rename(&beside, path).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.repository().join(name)).unwrap()
    }

    /// Writes a script for the embedded agent beside the repository and returns its reference.
    pub(crate) fn script(&self, name: &str, content: &str) -> String {
        let path = self.root().join(name);
        write(&path, content);
        format!("script:{}", path.display())
    }

    /// Writes the person's configuration.
    pub(crate) fn configure(&self, content: &str) -> PathBuf {
        let path = self.home().join(".config/kapi/config.toml");
        write(&path, content);
        path
    }

    pub(crate) fn commit_all(&self, message: &str) {
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    /// Runs git in the repository, which must succeed, and returns what it printed.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        let identity = ["-c", "user.name=Ada", "-c", "user.email=ada@localhost"];
        let mut command = self.command("git", &self.repository());
        command.args(identity).args(args);
        let output = finish(command);
        assert_eq!(output.code, 0, "git {args:?}: {}", output.stderr);
        output.stdout.trim_end().to_owned()
    }

    /// Returns what a branch points at.
    pub(crate) fn commit_of(&self, revision: &str) -> String {
        self.git(&["rev-parse", revision])
    }

    /// Returns the content of a file in a commit.
    pub(crate) fn show(&self, revision: &str, file: &str) -> String {
        self.git(&["show", &format!("{revision}:{file}")])
    }

    /// Runs `kapi` in the repository to its end.
    pub(crate) fn kapi(&self, args: &[&str]) -> Output {
        self.kapi_in(&self.repository(), args)
    }

    /// Runs `kapi` in a directory to its end.
    pub(crate) fn kapi_in(&self, dir: &Path, args: &[&str]) -> Output {
        let mut command = self.command(env!("CARGO_BIN_EXE_kapi"), dir);
        command.args(args);
        finish(command)
    }

    /// Runs `kapi … --json` and returns its one document.
    pub(crate) fn json(&self, args: &[&str]) -> Value {
        let output = self.kapi(&[args, &["--json"]].concat());
        output.document()
    }

    /// Starts `kapi` in the repository.
    pub(crate) fn start(&self, args: &[&str]) -> Running {
        let mut command = self.command(env!("CARGO_BIN_EXE_kapi"), &self.repository());
        command.args(args);
        Running::spawn(command)
    }

    /// Runs the usual task with an agent to its end.
    pub(crate) fn run(&self, agent: &str, options: &[&str]) -> Run {
        self.kapi(&usual(agent, &[options, &["--json"]].concat()))
            .into()
    }

    /// Starts the usual task with an agent.
    pub(crate) fn start_run(&self, agent: &str, options: &[&str]) -> Running {
        self.start(&usual(agent, &[options, &["--json"]].concat()))
    }

    pub(crate) fn resume(&self, reference: &str) -> Run {
        self.kapi(&["resume", reference, "--json"]).into()
    }

    /// Returns the events of a goal's log.
    pub(crate) fn events(&self, id: &str) -> Vec<Value> {
        let text = fs::read_to_string(self.log(id)).unwrap_or_default();
        let whole = text
            .rsplit_once('\n')
            .map_or("", |(lines, _unfinished)| lines);
        whole.lines().map(parse).collect()
    }

    /// Waits until a goal's log holds an event, and returns it.
    pub(crate) fn await_event(&self, id: &str, is_it: &dyn Fn(&Value) -> bool) -> Value {
        self.await_record(&self.goal_dir(id), &format!("an event in {id}"), || {
            self.events(id).into_iter().find(|event| is_it(event))
        })
    }

    /// Waits until something is recorded in a directory of the repository, which need not be there yet.
    pub(crate) fn await_record<T>(
        &self,
        dir: &Path,
        what: &str,
        mut look: impl FnMut() -> Option<T>,
    ) -> T {
        let repository = self.repository();
        let within = dir
            .ancestors()
            .take_while(|path| path.starts_with(&repository));
        let watched = WakeSources {
            directories: within.map(Path::to_path_buf).collect(),
            ..WakeSources::default()
        };
        let began = Instant::now();
        let mut alarm = Alarm::new().unwrap();
        loop {
            alarm.watch(&watched).unwrap();
            if let Some(found) = look() {
                return found;
            }
            assert!(began.elapsed() < PATIENCE, "waited in vain for {what}");
            alarm.sleep(UNTOLD_MAX, &|| false).unwrap();
        }
    }

    /// Waits until no process of this machine is left.
    pub(crate) fn await_no_process(&self) {
        let marker = self.marker();
        let began = Instant::now();
        let mut alarm = Alarm::new().unwrap();
        loop {
            let left = processes_with(&marker);
            let Some(first) = left.first() else {
                return;
            };
            assert!(began.elapsed() < PATIENCE, "processes are left: {left:?}");
            let pid = first.split(' ').next().unwrap().parse().unwrap();
            let watched = WakeSources {
                processes: process_name(pid).into_iter().collect(),
                ..WakeSources::default()
            };
            alarm.watch(&watched).unwrap();
            if !watched.processes.is_empty() {
                alarm.sleep(UNTOLD_MAX, &|| false).unwrap();
            }
        }
    }

    /// Returns a command with this machine's environment and nothing else.
    pub(crate) fn command(&self, program: &str, dir: &Path) -> Command {
        let mut words = self.launcher.iter().map(String::as_str).chain([program]);
        let mut command = new_command(words.next().unwrap());
        command.args(words).current_dir(dir);
        command.env_clear().envs(&self.vars);
        command.stdin(Stdio::null());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }
}

/// Returns the arguments of the usual run.
pub(crate) fn usual<'a>(agent: &'a str, options: &[&'a str]) -> Vec<&'a str> {
    let is_said = options.contains(&"--verify") || options.contains(&"--unverified");
    let verify: &[&str] = if is_said {
        &[]
    } else {
        &["--verify", "sh test.sh"]
    };
    [&["run", TASK, "--yes", "--agent", agent], verify, options].concat()
}

/// Waits until something is there.
pub(crate) fn await_some<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let began = Instant::now();
    loop {
        let before = began.elapsed();
        if let Some(found) = look() {
            return found;
        }
        let passed = began.elapsed();
        assert!(passed < PATIENCE, "waited in vain for {what}");
        // At most half of the time is for looking.
        let pause = (passed / 10).clamp(LOOK_MIN, LOOK_MAX);
        thread::sleep(pause.max(passed - before));
    }
}

/// Returns the processes that carry a text in their environment or command line.
pub(crate) fn processes_with(marker: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap() {
        let path = entry.unwrap().path();
        let pid = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
        if pid == own || !pid.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        // A process may end, or belong to somebody else, while we look.
        let read = |name: &str| fs::read(path.join(name)).unwrap_or_default();
        let (environ, cmdline) = (read("environ"), read("cmdline"));
        let holds = |bytes: &[u8]| String::from_utf8_lossy(bytes).contains(marker);
        if holds(&environ) || holds(&cmdline) {
            let words = String::from_utf8_lossy(&cmdline).replace('\0', " ");
            found.push(format!("{pid} {words}"));
        }
    }
    found
}

/// Writes a file and its directories.
#[expect(clippy::disallowed_methods, reason = "a fixture needs no durability")]
pub(crate) fn write(path: &Path, content: impl AsRef<[u8]>) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, content).unwrap();
}

#[expect(
    clippy::disallowed_methods,
    reason = "the test is the person who types"
)]
fn new_command(program: &str) -> Command {
    Command::new(program)
}

/// Checks many cases at once: most of their time is waiting for a disk or a clock.
pub(crate) fn for_each<T: Sync>(cases: &[T], check: impl Fn(&T) + Sync) {
    let next = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..CASES_AT_ONCE {
            let take = || cases.get(next.fetch_add(1, Ordering::Relaxed));
            let check = &check;
            scope.spawn(move || iter::from_fn(take).for_each(check));
        }
    });
}
