//! A gate and whoever asks there: yes, no, a person's word, hostile questions, and nobody at all.

use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use std::{fs, thread};

use kapi_agent::agent::AgentKind;
use kapi_check::rules::proof::attribution::Attribution;
use kapi_check::rules::proof::policy::CheckPolicy;
use kapi_core::actor::Actor;
use kapi_core::id::{GoalId, Slug};
use kapi_core::isolation::{NetworkMode, SandboxLevel};
use kapi_core::judge::{Judge, JudgeUnavailable};
use kapi_gateway::serve::StopSignal;
use kapi_run::gate::client::{ask, ask_within};
use kapi_run::gate::person::Person;
use kapi_run::gate::support::check;
use kapi_run::gate::{GateRules, GateSite, PermissionGate};
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::SystemClock;
use kapi_sys::real_disk::RealDisk;
use tempfile::TempDir;

use super::{TaskTools, ToolCaller, ToolService};
use crate::record::project::Project;
use crate::rules::budget::Budget;
use crate::rules::command::{GoalCommand, PersonCommand};
use crate::rules::contract::{Base, CONTRACT_VERSION, Contract, Working};
use crate::rules::state::Goal;

struct GateRig {
    folder: TempDir,
    tool_service: ToolService<'static>,
    goal: GoalId,
}

fn human() -> Actor {
    Actor::Human {
        user: "ada".to_owned(),
    }
}

fn contract(ask_before: &[&str]) -> Contract {
    Contract {
        version: CONTRACT_VERSION,
        intent: "it".to_owned(),
        done_criteria: "it".to_owned(),
        verify: vec!["true".to_owned()],
        verify_timeout_ms: 1_000,
        verify_network: false,
        protect: Vec::new(),
        hidden: None,
        budget: Budget {
            turns: 3,
            tokens: None,
            usd_micros: None,
            wall_ms: None,
        },
        stall_after: 3,
        turn_timeout_ms: 1_000,
        agent: "claude".to_owned(),
        models: Vec::new(),
        judge: Judge::None,
        judge_unavailable: JudgeUnavailable::Closed,
        base: Base {
            revision: "HEAD".to_owned(),
            commit: "c".repeat(40),
            tree: "t".repeat(40),
        },
        branch: "feat/x".to_owned(),
        sandbox: SandboxLevel::None,
        network: NetworkMode::None,
        working: Working {
            ask_before: ask_before.iter().map(|it| (*it).to_owned()).collect(),
            ..Working::default()
        },
        checks: CheckPolicy::default(),
        attribution: Attribution::default(),
        race: None,
        delivery: None,
    }
}

impl GateRig {
    fn new(ask_before: &[&str], person: Option<Person>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir_all(folder.path().join(".ilchul/goals")).unwrap();
        let tool_service = ToolService {
            project: Project {
                disk: &RealDisk,
                clock: &SystemClock,
                layout: ProjectLayout::new(folder.path().to_path_buf()),
                owner: "test".to_owned(),
                home: None,
            },
            autopilot: None,
            judge_default: None,
            person,
            named_checks: Arc::new(|_| Ok(Vec::new())),
            tasks: TaskTools {
                are_offered: false,
                call: Arc::new(|_, _, _| None),
            },
        };
        let slug = Slug::parse("fix-it").unwrap();
        let started = tool_service
            .project
            .begin_setup(&human(), &slug, &contract(ask_before));
        let goal = started.unwrap();
        Self {
            folder,
            tool_service,
            goal,
        }
    }

    fn caller(&self) -> ToolCaller<'_> {
        ToolCaller {
            tool_service: &self.tool_service,
            goal: &self.goal,
            run: "001-fix-it-t0",
            hidden: Path::new("/nowhere"),
        }
    }

    fn open(&self, rules: GateRules<'_>) -> Option<PathBuf> {
        let gate = self.gate(rules);
        gate.map(|gate| gate.seen_inside().socket.to_path_buf())
    }

    fn gate<'a>(&self, rules: GateRules<'a>) -> Option<PermissionGate<'a>> {
        let directory = self.folder.path().join("gate");
        let site = GateSite {
            level: SandboxLevel::None,
            workspace: self.folder.path(),
            directory: &directory,
            self_exe: Path::new("/bin/true"),
        };
        PermissionGate::open(rules, &AgentKind::Claude, &site).unwrap()
    }

    /// Does something while the goal's gate is served.
    fn served<T>(&self, act: impl FnOnce(&PermissionGate<'_>) -> T) -> T {
        let caller = self.caller();
        let gate = self.gate(GateRules::Service(&caller)).unwrap();
        let stop = StopSignal::new().unwrap();
        thread::scope(|scope| {
            scope.spawn(|| gate.serve(&stop));
            let done = act(&gate);
            stop.raise();
            done
        })
    }

    fn loaded(&self) -> Goal {
        self.tool_service.project.load(&self.goal).unwrap()
    }

    fn allow(&self, what: &str) {
        let command = GoalCommand::Person(PersonCommand::Allow {
            what: what.to_owned(),
        });
        let project = &self.tool_service.project;
        project.submit(&self.goal, &human(), &command).unwrap();
    }
}

fn bash(command: &str) -> Vec<u8> {
    let input = serde_json::json!({"tool_name": "Bash", "tool_input": {"command": command}});
    input.to_string().into_bytes()
}

/// A person who gives these answers one after another, and whoever asks them.
fn answering(answers: &'static [bool]) -> (Person, Arc<Mutex<Vec<String>>>) {
    let asked = Arc::new(Mutex::new(Vec::new()));
    let (n, heard) = (AtomicU32::new(0), Arc::clone(&asked));
    let ask = move |question: &str, _is_over: &dyn Fn() -> bool| {
        heard.lock().unwrap().push(question.to_owned());
        let at = usize::try_from(n.fetch_add(1, Ordering::SeqCst)).unwrap();
        *answers.get(at).expect("asked once too often")
    };
    let person = Person {
        actor: human(),
        ask: Arc::new(ask),
    };
    (person, asked)
}

#[test]
fn ask_before_denies_with_a_reason_and_records_each_command_once() {
    let rig = GateRig::new(&["git push", "rm -rf"], None);
    rig.served(|gate| {
        assert_eq!(ask(gate.seen_inside().socket, &bash("git status")), Ok(()));
        for _ in 0..3 {
            let reason = ask(gate.seen_inside().socket, &bash("git -C x push")).unwrap_err();
            for words in [
                "the user must allow \"git push\"",
                "kapi goal allow 001-fix-it \"git push\"",
                "until_done_block",
            ] {
                assert!(reason.contains(words), "{reason}");
            }
        }
        ask(gate.seen_inside().socket, &bash("rm -fr x")).unwrap_err();
        assert_eq!(gate.without_refused(Some(9), 5), Some(1));
        assert_eq!(gate.without_refused(None, 4), Some(0));
        assert_eq!(gate.without_refused(None, 5), None);
    });
    let asked = rig.loaded().consent.asked;
    let seen: Vec<(&str, &str)> = asked
        .iter()
        .map(|asked| (asked.pattern.as_str(), asked.command.as_str()))
        .collect();
    assert_eq!(
        seen,
        [("git push", "git -C x push"), ("rm -rf", "rm -fr x")]
    );
}

#[test]
fn ask_before_is_over_as_soon_as_a_person_allows_it() {
    let rig = GateRig::new(&["git push", "rm -rf"], None);
    rig.served(|gate| {
        ask(gate.seen_inside().socket, &bash("git push")).unwrap_err();
        rig.allow("git push");
        assert_eq!(ask(gate.seen_inside().socket, &bash("git push")), Ok(()));
        let reason = ask(gate.seen_inside().socket, &bash("git push; rm -rf x")).unwrap_err();
        assert!(reason.contains("rm -rf"), "{reason}");
    });
}

#[test]
fn ask_before_asks_the_person_at_the_terminal() {
    let (person, asked) = answering(&[true, false]);
    let rig = GateRig::new(&["git push", "rm -rf"], Some(person));
    rig.served(|gate| {
        assert_eq!(ask(gate.seen_inside().socket, &bash("git push")), Ok(()));
        assert_eq!(
            ask(gate.seen_inside().socket, &bash("git push again")),
            Ok(())
        );
        // A no holds for the run: nobody is asked the same over and over.
        for _ in 0..3 {
            let reason = ask(gate.seen_inside().socket, &bash("rm -rf x")).unwrap_err();
            assert!(reason.starts_with("user denied \"rm -rf\""), "{reason}");
        }
    });
    let goal = rig.loaded();
    assert!(goal.consent.allowed.contains("git push"));
    assert!(!goal.consent.allowed.contains("rm -rf"));
    assert_eq!(
        goal.consent.asked.len(),
        1,
        "what was allowed is no refusal"
    );
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    assert!(asked[0].contains("wants to run: git push\n"), "{asked:?}");
}

#[test]
fn ask_before_denies_what_cannot_be_read() {
    let rig = GateRig::new(&["git push"], None);
    rig.served(|gate| {
        for payload in [
            &b""[..],
            b"{",
            b"null",
            br#"{"tool_name":"Bash"}"#,
            &[0xff; 100],
        ] {
            ask(gate.seen_inside().socket, payload).unwrap_err();
        }
        let cut = bash("git status");
        ask(gate.seen_inside().socket, cut.get(..cut.len() - 3).unwrap()).unwrap_err();
        let long = bash(&"x".repeat(9 << 20));
        ask(gate.seen_inside().socket, &long).unwrap_err();
        fs::remove_dir_all(rig.folder.path().join(".ilchul")).unwrap();
        ask(gate.seen_inside().socket, &bash("git status")).unwrap_err();
    });
}

#[test]
fn ask_before_denies_where_nobody_answers() {
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("missing.sock");
    let reason = ask(&missing, &bash("ls")).unwrap_err();
    assert!(reason.contains("so this is denied"), "{reason}");
    ask(Path::new(""), &bash("ls")).unwrap_err();
    // Somebody who takes the question and never answers.
    let silent = folder.path().join("silent.sock");
    let _listener = UnixListener::bind(&silent).unwrap();
    let began = Instant::now();
    ask_within(&silent, &bash("ls"), Duration::from_millis(50)).unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(30));
    for answer in [
        "",
        "allow it",
        "deny",
        "\n",
        "ALLOW\n",
        "{\"decision\":\"allow\"}\n",
    ] {
        let socket = folder.path().join(format!("{}.sock", answer.len()));
        drop(fs::remove_file(&socket));
        let listener = UnixListener::bind(&socket).unwrap();
        thread::scope(|scope| {
            scope.spawn(|| {
                use std::io::{Read as _, Write as _};
                let (mut stream, _) = listener.accept().unwrap();
                stream.read_to_end(&mut Vec::new()).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            });
            ask(&socket, &bash("ls")).unwrap_err();
        });
    }
}

#[test]
fn ask_before_without_a_list_has_no_gate() {
    let rig = GateRig::new(&[], None);
    assert_eq!(rig.open(GateRules::Service(&rig.caller())), None);
    assert_eq!(rig.open(GateRules::Fixed(&[])), None);
    assert!(rig.open(GateRules::Fixed(&["x".to_owned()])).is_some());
    let left = rig.folder.path().join("gate");
    assert!(!left.exists(), "a gate takes its directory with it");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a fixture needs no durability")]
fn ask_before_is_refused_where_it_could_not_be_held() {
    let command = AgentKind::Command("true".to_owned());
    assert!(check(&command, &[]).is_ok());
    assert!(check(&AgentKind::Claude, &["x".to_owned()]).is_ok());
    let failure = check(&command, &["x".to_owned()]).unwrap_err();
    assert!(failure.hint.unwrap().contains("claude, codex, gemini, pi"));
    let folder = tempfile::tempdir().unwrap();
    let rules = ["x".to_owned()];
    let open = |level| {
        let directory = folder.path().join("gate");
        let site = GateSite {
            level,
            workspace: folder.path(),
            directory: &directory,
            self_exe: Path::new("/bin/true"),
        };
        PermissionGate::open(GateRules::Fixed(&rules), &AgentKind::Gemini, &site).map(drop)
    };
    assert!(open(SandboxLevel::None).is_ok());
    fs::create_dir(folder.path().join(".gemini")).unwrap();
    fs::write(folder.path().join(".gemini/settings.json"), "{}").unwrap();
    assert!(
        open(SandboxLevel::None).is_err(),
        "it would outrank the hook"
    );
    assert!(open(SandboxLevel::Native).is_ok());
}
