//! Policies on a real disk: read with their lines, and whatever is wrong denies everything.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use proptest::prelude::proptest;
use rustix::fs::{CWD, FileType, Mode, mknodat};
use tempfile::TempDir;

use super::reading::FILE_BYTES_MAX;
use super::{PolicyPaths, load, local_times, parse};
use crate::rules::policy::{PolicyDecision, PolicyRequest, RequestKind, evaluate};
use crate::rules::task_terms::TaskBudget;

struct PolicyRig {
    dir: TempDir,
}

impl PolicyRig {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        fs::create_dir_all(dir.path().join("project/.ilchul")).unwrap();
        fs::create_dir_all(dir.path().join("config")).unwrap();
        Self { dir }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn of_project(&self) -> PathBuf {
        self.path("project/.ilchul/policy.yaml")
    }

    fn of_person(&self) -> PathBuf {
        self.path("config/policy.yaml")
    }

    fn decide(&self, now_ms: i64) -> PolicyDecision {
        let policy = load(PolicyPaths {
            project: &self.path("project"),
            person: &self.path("config"),
        });
        let request = PolicyRequest {
            kind: RequestKind::Task,
            agent: Some("sisyphus".to_owned()),
            loop_name: None,
            project: "/srv/shop".to_owned(),
            backend: None,
            tools: None,
            prompt: "Fix it.".to_owned(),
            trigger_source: None,
            budget: TaskBudget::default(),
            is_unattended: true,
            network: None,
            hosts: Vec::new(),
            commands: Vec::new(),
            paths: Vec::new(),
            local_times: local_times(&policy, now_ms),
        };
        evaluate(&policy, &request)
    }

    /// Returns what speaks against any request, without the directory of this test.
    fn said(&self) -> Vec<String> {
        let decision = self.decide(0);
        assert_eq!(decision.allowed, decision.violations.is_empty());
        let dir = format!("{}/", self.dir.path().display());
        let reported = decision.violations.iter();
        reported
            .map(|violation| violation.to_string().replace(&dir, ""))
            .collect()
    }
}

fn write(path: &Path, text: &str) {
    let mut file = fs::File::create(path).unwrap();
    std::io::Write::write_all(&mut file, text.as_bytes()).unwrap();
}

#[test]
fn without_a_file_everything_is_allowed() {
    let rig = PolicyRig::new();
    assert_eq!(rig.said(), [""; 0]);
    fs::remove_dir(rig.path("project/.ilchul")).unwrap();
    fs::remove_dir(rig.path("config")).unwrap();
    assert_eq!(rig.said(), [""; 0]);
    fs::create_dir(rig.path("project/.ilchul")).unwrap();
    for text in ["", "# nothing yet\n", "---\n"] {
        write(&rig.of_project(), text);
        assert_eq!(rig.said(), [""; 0], "{text:?}");
    }
}

#[test]
fn both_apply_and_a_denial_of_either_wins() {
    let allow = "rules:\n  - effect: allow\n";
    let deny = "# mine\nrules:\n  - name: not here\n    effect: deny\n    reason: it is closed\n";
    for (project, person, said) in [
        (allow, allow, ""),
        (
            deny,
            allow,
            "it is closed (not here, .ilchul/policy.yaml, line 3)",
        ),
        (
            allow,
            deny,
            "it is closed (not here, config/policy.yaml, line 3)",
        ),
    ] {
        let rig = PolicyRig::new();
        write(&rig.of_project(), project);
        write(&rig.of_person(), person);
        let wanted: Vec<&str> = Some(said)
            .into_iter()
            .filter(|said| !said.is_empty())
            .collect();
        assert_eq!(rig.said(), wanted);
    }
}

#[test]
fn a_rule_of_the_clock_needs_no_more_than_now() {
    let rig = PolicyRig::new();
    let text =
        "rules: [{name: night, effect: deny, when: {hours: \"22:00-06:00\", zone: Europe/Berlin}}]";
    write(&rig.of_project(), text);
    // Monday, 26 October 2026: 08:30 UTC is 09:30 in Berlin.
    assert!(rig.decide(1_793_003_400_000).allowed);
    assert!(!rig.decide(1_793_003_400_000 + 13 * 3_600_000).allowed);
}

#[test]
fn what_is_wrong_denies_and_says_where() {
    for (text, said) in [
        (
            "rules:\n  - effect: deny\n    when:\n      agnet: x\n",
            "the policy cannot be used: `rules[0].when.agnet`: unknown key; did you mean \
             `rules[0].when.agent`? (policy file, .ilchul/policy.yaml, line 4)",
        ),
        (
            "default: allow\n\nruls: []\n",
            "the policy cannot be used: `ruls`: unknown key; did you mean `rules`? (policy \
             file, .ilchul/policy.yaml, line 3)",
        ),
        (
            "rules:\n  - effect: deny\n    when:\n      tool:\n        - Bash\n        - 3\n",
            "the policy cannot be used: `rules[0].when.tool[1]`: it is a whole number; give \
             text (in quotes if it looks like a number) (policy file, .ilchul/policy.yaml, line 6)",
        ),
        (
            "rules:\n  - effect: deny\n    when: {days: mon, zone: Europe/Atlantis}\n",
            "the policy cannot be used: `when.zone`: there is no time zone \"Europe/Atlantis\"; write a name of the IANA database, like Europe/Berlin or UTC, or local (policy file, .ilchul/policy.yaml, line 2)",
        ),
        (
            "backgroundTask:\n  maxPromptChars: .inf\n",
            "the policy cannot be used: non-finite float `.inf` rejected by the configured \
             policy at line 2, column 19; fix the YAML (policy file, .ilchul/policy.yaml, line 2)",
        ),
        (
            "- effect: deny\n",
            "the policy cannot be used: it must be a table of settings, not a list; fix the \
             YAML (policy file, .ilchul/policy.yaml, line 1)",
        ),
        (
            "default: deny\ndefault: allow\n",
            "the policy cannot be used: `default` is set twice; fix the YAML (policy file, \
             .ilchul/policy.yaml, line 2)",
        ),
    ] {
        let rig = PolicyRig::new();
        write(&rig.of_project(), text);
        write(&rig.of_person(), "rules: [{effect: allow}]");
        assert_eq!(rig.said(), [said], "{text}");
    }
}

#[test]
fn broken_yaml_denies() {
    for text in [
        "rules: [",
        "a: b: c",
        "\t- x",
        "rules:\n - effect: deny\n  x: y",
        "{",
        "\u{0}",
        "&a *a",
    ] {
        let source = parse("policy.yaml", text);
        assert_ne!(source.faults, [], "{text:?}");
        assert!(source.faults[0].line >= 1 && source.faults[0].file == "policy.yaml");
    }
}

/// What is put in the place of the file, and what is said of it.
#[test]
fn only_a_file_that_is_not_there_says_nothing() {
    type Put = fn(&Path);
    let cases: [(Put, &str, &str); 8] = [
        (
            |path| symlink("elsewhere.yaml", path).unwrap(),
            "it is a symbolic link or behind one",
            "replace the link with the file",
        ),
        (
            |path| symlink("/dev/null", path).unwrap(),
            "it is a symbolic link or behind one",
            "replace the link with the file",
        ),
        (
            |path| fs::create_dir(path).unwrap(),
            "it is not a regular file",
            "put a regular file there, or remove it",
        ),
        (
            |path| mknodat(CWD, path, FileType::Fifo, Mode::RUSR, 0).unwrap(),
            "it is not a regular file",
            "put a regular file there, or remove it",
        ),
        (
            |path| drop(UnixListener::bind(path).unwrap()),
            "it is not a regular file",
            "put a regular file there, or remove it",
        ),
        (
            |path| {
                write(
                    path,
                    &" ".repeat(usize::try_from(FILE_BYTES_MAX).unwrap() + 1),
                );
            },
            "it is longer than 64 KiB",
            "shorten it",
        ),
        (
            |path| {
                let mut file = fs::File::create(path).unwrap();
                std::io::Write::write_all(&mut file, b"default: \xff").unwrap();
            },
            "it is not UTF-8",
            "save it as UTF-8",
        ),
        (
            |path| {
                let dir = path.parent().unwrap();
                let moved = dir.with_extension("moved");
                fs::rename(dir, &moved).unwrap();
                symlink(&moved, dir).unwrap();
            },
            "it is a symbolic link or behind one",
            "replace the link with the file",
        ),
    ];
    for (put, what, remedy) in cases {
        let rig = PolicyRig::new();
        put(&rig.of_project());
        let said = format!(
            "the policy cannot be used: {what}; {remedy} (policy file, .ilchul/policy.yaml, line 1)"
        );
        assert_eq!(rig.said(), [said]);
    }
}

#[test]
fn a_directory_that_is_none_denies() {
    let rig = PolicyRig::new();
    fs::remove_dir(rig.path("project/.ilchul")).unwrap();
    write(&rig.path("project/.ilchul"), "");
    assert_eq!(
        rig.said(),
        [
            "the policy cannot be used: its parent is not a directory; put a directory there, \
             or remove it (policy file, .ilchul/policy.yaml, line 1)"
        ]
    );
    let rig = PolicyRig::new();
    fs::remove_dir_all(rig.path("project")).unwrap();
    assert_eq!(
        rig.said(),
        [
            "the policy cannot be used: the project does not exist; give an existing directory \
             (policy file, .ilchul/policy.yaml, line 1)"
        ]
    );
}

#[test]
fn what_others_can_write_is_not_the_persons() {
    let rig = PolicyRig::new();
    write(&rig.of_person(), "rules: [{effect: allow}]");
    fs::set_permissions(rig.of_person(), Permissions::from_mode(0o666)).unwrap();
    assert_eq!(
        rig.said(),
        [
            "the policy cannot be used: others can write it; make sure you own it, and run \
             `chmod o-w` on it (policy file, config/policy.yaml, line 1)"
        ]
    );
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in r"((rules|default|effect|when|deny|allow|agent|[-:{}\[\]&*!|>, \n\t]|\PC){0,3}){0,30}") {
        let source = parse("policy.yaml", &text);
        for fault in &source.faults {
            assert!(fault.line >= 1 && !fault.what.is_empty() && !fault.remedy.is_empty());
        }
    }
}
