//! A person's machine in a directory: a home, a repository, a queue, and a worker that performs.
//!
//! What should come of a task is each test's affair.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command as Process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, LazyLock, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};

use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::task_id::{KernelTaskId, LoopName};
use kapi_core::value::KernelValue;
use kapi_goal::record::project::Project;
use kapi_launch::paths::Sandboxes;
use kapi_machine::watch::Activity;
use kapi_run::grant::Grant;
use kapi_run::host_grants::HostGrants;
use kapi_run::spending::Spending;
use kapi_spend::record::{Ledger, LedgerHome};
use kapi_spend::rules::caps::Caps;
use kapi_spend::rules::prices::Prices;
use kapi_store::layout::{ProjectLayout, project_key};
use kapi_sys::clock::{StepClock, SystemClock};
use kapi_sys::real_disk::RealDisk;
use kapi_task::perform::{Performer, PerformerSettings};
use kapi_task::record::admission::{KeyAsk, LoopAsk, TaskAdmission, TaskAsk};
use kapi_task::record::queue::Queue;
use kapi_task::record::store::{KernelStore, LEASE_MS};
use kapi_task::record::terms::KernelTerms;
use kapi_task::record::worker::{KernelWorker, LeaseHandle, WorkerTerms};
use kapi_task::record::{definition_file, profile_file};
use kapi_task::rules::command::KernelCommand;
use kapi_task::rules::decide::KernelReply;
use kapi_task::rules::definition::Definition;
use kapi_task::rules::loop_run::RunTrigger;
use kapi_task::rules::policy::Policy;
use kapi_task::rules::task::{AttemptReport, End, KernelTask};
use kapi_task::rules::task_terms::Priority;
use tempfile::TempDir;

use crate::asks::{Ask, BODY, human, person};
use crate::workers::Workers;

/// The longest that a test waits for anything.
const PATIENCE: Duration = Duration::from_secs(120);
/// The time of what is spent: no day of a cap ends while a test runs.
static NOON: LazyLock<StepClock> = LazyLock::new(|| StepClock::new(1_800_014_400_000));

/// Takes what happens; the second argument cancels the task.
type Watcher<'a> = dyn Fn(&Activity, &dyn Fn()) + Sync + 'a;

/// A machine.
pub(crate) struct Machine {
    root: TempDir,
    /// At the command with this word the first worker leaves, and another goes on.
    pub(crate) leaves_at: Option<&'static str>,
    /// Tasks at once; with more than one, all that wait are worked on.
    pub(crate) slots: usize,
    /// What is set for the kernel.
    pub(crate) terms: KernelTerms,
    /// How agents are run.
    pub(crate) setting: PerformerSettings,
    /// What a day may cost.
    pub(crate) caps: Caps,
}

impl Machine {
    /// Makes a machine with a repository of one commit.
    pub(crate) fn new() -> Self {
        let machine = Self::plain();
        machine.git(&["init", "--quiet", "--initial-branch", "main"]);
        machine.write("answer.txt", "wrong\n");
        machine.write("notes/keep.md", "as it is\n");
        machine.commit("base");
        machine
    }

    /// Makes a machine whose project no git knows.
    pub(crate) fn plain() -> Self {
        let tmp = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let root = tempfile::Builder::new()
            .prefix("kapi-")
            .tempdir_in(tmp)
            .unwrap();
        for name in ["home/.config/kapi", "app"] {
            fs::create_dir_all(root.path().join(name)).unwrap();
        }
        let home = root.path().join("home");
        let terms = KernelTerms::standard(root.path().join("app/.ilchul/guardrails"));
        let app = root.path().join("app").canonicalize().unwrap();
        let setting = PerformerSettings {
            project_key: project_key(&app),
            sandboxes: Sandboxes {
                state_dir: home.join(".ilchul"),
            },
            person: home.join(".config/kapi"),
            level: SandboxLevel::Native,
            network: NetworkMode::Filtered,
            judge: None,
            is_unattended: true,
        };
        Self {
            root,
            leaves_at: None,
            slots: 1,
            terms,
            setting,
            caps: Caps::none(),
        }
    }

    pub(crate) fn app(&self) -> PathBuf {
        self.root.path().join("app").canonicalize().unwrap()
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, name: &str, text: &str) {
        write(&self.app().join(name), text);
    }

    /// Writes the policy of the project.
    pub(crate) fn policy(&self, text: &str) {
        self.write(".ilchul/policy.yaml", text);
    }

    /// Writes a script beside the project and returns its reference.
    pub(crate) fn script(&self, text: &str) -> String {
        let file = self.root.path().join("agent.yaml");
        write(&file, text);
        format!("script:{}", file.display())
    }

    pub(crate) fn commit(&self, message: &str) {
        write(&self.app().join(".git/info/exclude"), ".ilchul/\n");
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--message", message]);
    }

    /// Runs git in the project and returns what it says.
    pub(crate) fn git(&self, args: &[&str]) -> String {
        #[expect(clippy::disallowed_methods, reason = "a test looks from outside")]
        let output = Process::new("git")
            .args(["-c", "user.name=Test", "-c", "user.email=test@localhost"])
            .args(args)
            .current_dir(self.app())
            .env_clear()
            .env("PATH", std::env::var("PATH").unwrap())
            .env("HOME", self.root.path())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "git {args:?}: {text}{said}");
        text
    }

    /// Returns the ledger of the machine, with its caps.
    pub(crate) fn spending(&self) -> Spending<'static> {
        let home = LedgerHome {
            disk: &RealDisk,
            clock: &*NOON,
            home: self.root.path().join("home"),
            owner: "test".to_owned(),
        };
        Spending {
            ledger: Some(Ledger::open(home).unwrap()),
            caps: self.caps,
            project: self.setting.project_key.clone(),
            clock: &*NOON,
        }
    }

    pub(crate) fn grants(&self) -> HostGrants {
        let mut env: BTreeMap<OsString, OsString> = BTreeMap::new();
        env.insert("PATH".into(), std::env::var_os("PATH").unwrap());
        HostGrants {
            agents: BTreeMap::new(),
            judges: BTreeMap::new(),
            prices: Prices::default(),
            grant: Grant::default(),
            env,
            home: self.root.path().join("home"),
            self_exe: PathBuf::from(env!("CARGO_BIN_EXE_kapi-testkit-helper")),
        }
    }

    /// Submits a task and works until it has ended.
    pub(crate) fn run(&self, ask: &Ask) -> KernelTask {
        self.run_watched(ask, &|_, _| {})
    }

    /// Does the same, and tells of everything that happens; what is told may cancel it.
    pub(crate) fn run_watched(&self, ask: &Ask, watch: &Watcher<'_>) -> KernelTask {
        self.work(watch, |queue, admission| self.submit(queue, admission, ask))
    }

    /// Submits several tasks and works on three at a time until all have ended.
    pub(crate) fn run_all(&self, asks: &[Ask]) -> Vec<KernelTask> {
        let mut ids = Vec::new();
        let last = self.work(&|_, _| {}, |queue, admission| {
            let answers = asks.iter().map(|ask| self.submit(queue, admission, ask));
            ids = answers
                .map(|answer| match answer {
                    KernelReply::Submitted(id) => id,
                    other => panic!("it was not let in: {other:?}"),
                })
                .collect();
            KernelReply::Submitted(*ids.last().unwrap())
        });
        let all = ids.iter().map(|id| {
            if *id == last.id {
                last.clone()
            } else {
                self.finish(*id)
            }
        });
        all.collect()
    }

    pub(crate) fn submit(
        &self,
        queue: &mut Queue<'_>,
        admission: &TaskAdmission<'_>,
        ask: &Ask,
    ) -> KernelReply {
        let app = self.app();
        let profiles = profile_file::discover(&app, &app, &self.setting.person);
        let mut profile = profiles.find("sisyphus").unwrap().clone();
        if let Ok(found) = profiles.find(&ask.agent) {
            profile = found.clone();
        }
        profile.name.clone_from(&ask.agent);
        let ask = TaskAsk {
            description: "a task".to_owned(),
            prompt: ask.prompt.clone(),
            profile: &profile,
            backend: ask.backend.clone(),
            model: None,
            timeout_ms: Some(ask.timeout_ms),
            budget: ask.budget,
            domain: None,
            priority: Priority::Normal,
            key: KeyAsk::None,
            retry: ask.retry,
            verify: ask.verify.clone(),
            protect: Vec::new(),
            checks: CheckPolicy::default(),
            keep_commits: ask.keep_commits,
            base: None,
            origin: person(),
            depth: 0,
            retry_of: None,
        };
        admission.submit_task(queue, &human(), ask).unwrap()
    }

    /// Writes a loop, worked on by a shell agent, and returns its definition.
    pub(crate) fn define(&mut self, name: &str, settings: &str, line: &str) -> Definition {
        let profile = "---\nname: worker\ndescription: works\n---\nYou work.\n";
        self.write(".pi/agents/worker.md", profile);
        self.terms.default_backend = Some(format!("command:{line}"));
        let text = format!("---\nname: {name}\nagent: worker\n{settings}\n---\n{BODY}\n");
        self.write(&format!(".pi/loops/{name}.md"), &text);
        if !self.git(&["status", "--porcelain"]).is_empty() {
            self.commit("a loop");
        }
        let app = self.app();
        let found = definition_file::discover(&app, &app);
        assert!(found.faults.is_empty(), "{:?}", found.faults);
        found.find(&LoopName::parse(name).unwrap()).unwrap().clone()
    }

    /// Has a loop run and works until the run has ended.
    pub(crate) fn trigger(&self, definition: &Definition) -> KernelTask {
        self.trigger_watched(definition, &|_, _| {})
    }

    /// Does the same, and tells of everything that happens.
    pub(crate) fn trigger_watched(
        &self,
        definition: &Definition,
        watch: &Watcher<'_>,
    ) -> KernelTask {
        self.work(watch, |queue, admission| {
            let app = self.app();
            let profiles = profile_file::discover(&app, &app, &self.setting.person);
            let ask = LoopAsk {
                definition,
                profile: profiles.find(&definition.agent).unwrap(),
                trigger: RunTrigger::Manual { source: None },
                inputs: BTreeMap::new(),
                payload: KernelValue::Map(BTreeMap::from([(
                    "n".to_owned(),
                    KernelValue::Integer(7),
                )])),
                depth: 0,
                key: KeyAsk::None,
                origin: person(),
            };
            admission.trigger_loop(queue, &human(), ask).unwrap()
        })
    }

    /// Works until a task has ended that was let in before.
    pub(crate) fn finish(&self, id: KernelTaskId) -> KernelTask {
        self.work(&|_, _| {}, |_, _| KernelReply::Submitted(id))
    }

    /// Returns the tasks that have not ended.
    pub(crate) fn open_tasks(&self) -> Vec<KernelTaskId> {
        let project = self.project();
        let queue = Queue::open(&project).unwrap();
        queue.kernel().tasks.keys().copied().collect()
    }

    fn project(&self) -> Project<'static> {
        Project {
            disk: &RealDisk,
            clock: &SystemClock,
            layout: ProjectLayout::new(self.app()),
            owner: "test".to_owned(),
            home: None,
        }
    }

    /// Lets something in by the door and works until it has ended.
    pub(crate) fn work(
        &self,
        watch: &Watcher<'_>,
        submit: impl FnOnce(&mut Queue<'_>, &TaskAdmission<'_>) -> KernelReply,
    ) -> KernelTask {
        let project = self.project();
        project.prepare().unwrap();
        let mut queue = Queue::open(&project).unwrap();
        let admission = TaskAdmission {
            policy: &Policy::default(),
            local_times: &BTreeMap::new(),
            terms: &self.terms,
            is_unattended: true,
            base: &|_| Ok(None),
        };
        let KernelReply::Submitted(id) = submit(&mut queue, &admission) else {
            panic!("it was not let in");
        };
        self.serve(&project, queue, id, watch)
    }

    fn serve(
        &self,
        project: &Project<'_>,
        queue: Queue<'_>,
        id: KernelTaskId,
        watch: &Watcher<'_>,
    ) -> KernelTask {
        let is_leaving = AtomicBool::new(false);
        let leaves = |activity: &Activity| match (self.leaves_at, activity) {
            (Some(word), Activity::Verifying { command }) => command.contains(word),
            _ => false,
        };
        let (woken, waker) = (Mutex::new(false), Condvar::new());
        let ring = || {
            *woken.lock().unwrap() = true;
            waker.notify_one();
        };
        let cancel = || {
            let command = KernelCommand::Cancel {
                task: id,
                why: "the test does not want it".to_owned(),
            };
            let mut queue = Queue::open(project).unwrap();
            queue.submit(&human(), &command).unwrap();
            ring();
        };
        let notice = |_: KernelTaskId, activity: Activity| {
            watch(&activity, &cancel);
            if leaves(&activity) {
                is_leaving.store(true, Ordering::SeqCst);
                ring();
            }
        };
        let performer = Performer {
            grants: self.grants(),
            project,
            terms: self.terms.clone(),
            store: KernelStore::Files,
            setting: self.setting.clone(),
            spending: self.spending(),
            drive_goal: Box::new(|_, _, _, _| AttemptReport::of(End::Cancelled)),
            notice: &notice,
        };
        let perform = |task: &KernelTask, handle: &LeaseHandle<'_>| performer.perform(task, handle);
        let until = Instant::now() + PATIENCE;
        thread::scope(|scope| {
            let terms = || WorkerTerms {
                slots: self.slots,
                capacity: self.terms.capacity(),
                only: (self.slots == 1).then_some(id),
                lease_ms: LEASE_MS,
                perform: &perform,
                ring: &ring,
            };
            let first = KernelWorker::new(scope, queue, terms()).unwrap();
            let second =
                || KernelWorker::new(scope, Queue::open(project).unwrap(), terms()).unwrap();
            let mut workers = Workers {
                worker: first,
                second: Some(&second),
            };
            let mut wait = || {
                assert!(Instant::now() < until, "the task does not end");
                let woken = woken.lock().unwrap();
                let pause = Duration::from_millis(200);
                let waited = waker.wait_timeout_while(woken, pause, |woken| !*woken);
                *waited.unwrap().0 = false;
            };
            workers.finish(id, &is_leaving, &mut wait)
        })
    }

    /// Returns what a file holds at a commit or branch.
    pub(crate) fn at(&self, revision: &str, file: &str) -> String {
        self.git(&["show", &format!("{revision}:{file}")])
    }

    /// Returns the ref that holds the work of a task back that did not end well; no branch does.
    pub(crate) fn held_back(&self, task: &KernelTask) -> String {
        let branch = task.report.as_ref().unwrap().work.branch.clone().unwrap();
        assert!(branch.starts_with("refs/kapi/held/"), "{branch}");
        assert_eq!(self.git(&["branch", "--list", "kapi/*"]), "");
        branch
    }

    /// Returns what is left of the sandbox of an attempt.
    pub(crate) fn left(&self, task: &KernelTask) -> Vec<String> {
        let run = task.report.as_ref().unwrap().work.run.clone().unwrap();
        let file = kapi_task::perform::transcript(
            &self.setting.sandboxes,
            &self.setting.project_key,
            &run,
        );
        let dir = file.unwrap().ancestors().nth(3).unwrap().to_path_buf();
        let entries = fs::read_dir(dir).unwrap().flatten();
        let names = entries.map(|entry| entry.file_name().into_string().unwrap());
        let mut names: Vec<String> = names.collect();
        names.sort();
        names
    }

    /// Returns the transcript of an attempt.
    pub(crate) fn transcript(&self, task: &KernelTask) -> String {
        let run = task.report.as_ref().unwrap().work.run.clone().unwrap();
        let file = kapi_task::perform::transcript(
            &self.setting.sandboxes,
            &self.setting.project_key,
            &run,
        );
        fs::read_to_string(file.unwrap()).unwrap()
    }

    /// Returns what the agent of an attempt was told.
    pub(crate) fn prompt(&self, task: &KernelTask) -> String {
        let run = task.report.as_ref().unwrap().work.run.clone().unwrap();
        let file = kapi_task::perform::transcript(
            &self.setting.sandboxes,
            &self.setting.project_key,
            &run,
        );
        fs::read_to_string(file.unwrap().with_file_name("prompt.md")).unwrap()
    }
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    #[expect(
        clippy::disallowed_methods,
        reason = "a test's file need not be durable"
    )]
    fs::write(path, text).unwrap();
}
