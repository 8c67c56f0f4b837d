//! Conflicts that need no judgement, from the command line: a file that a tool writes anew, a tool that
//! fails, and a person's own rules.

use crate::environment::Environment;
use crate::integrate::{Batch, INTEGRATOR};

/// Writes the lock file of what is below `deps`.
const LOCK: &str = "cat deps/*.txt | sort > deps.lock\n";
/// Holds where the lock file is in step.
const IN_STEP: &str = "cat deps/*.txt | sort | cmp - deps.lock";

/// Makes a project with a lock file.
fn locked() -> Batch {
    let batch = Batch::new();
    let env = &batch.env;
    env.write("lock.sh", LOCK);
    env.write("deps/base.txt", "base\n");
    env.write("deps.lock", "base\n");
    env.write("notes.txt", "old\n");
    for file in ["lock.sh", "deps", "deps.lock", "notes.txt"] {
        env.git(&["add", file]);
    }
    env.git(&["commit", "--quiet", "--message", "a lock file"]);
    batch
}

/// Lets a goal be done that needs one thing more, and says so in the notes.
fn needs(batch: &Batch, word: &str) {
    let does = format!("echo {word} > deps/{word}.txt; sh lock.sh; echo {word} > notes.txt");
    let holds = format!("grep -qx {word} deps.lock");
    batch.goal(&format!("need {word}"), &does, &[IN_STEP, &holds]);
}

fn lock_of(env: &Environment, revision: &str) -> String {
    env.show(revision, "deps.lock")
}

#[test]
fn a_lock_file_is_written_anew_by_its_tool_and_no_agent_resolves_anything() {
    let batch = locked();
    let env = &batch.env;
    env.configure(
        "[integrate.conflicts]\n\"deps.lock\" = \"regenerate: sh lock.sh\"\n\"notes.*\" = \"ours\"\n",
    );
    // What the project says comes first.
    env.write(
        ".ilchul/config.toml",
        "[integrate.conflicts]\n\"notes.txt\" = \"theirs\"\n",
    );
    needs(&batch, "one");
    needs(&batch, "two");
    // What a rule takes away is a finding all the same.
    let justified = "justified: [{finding: 1, why: The rule says so.}]";
    let agent = env.script(
        "justifies.yaml",
        &INTEGRATOR.replace("justified: []", justified),
    );
    let words = [
        "integrate",
        "1",
        "2",
        "--create-dev",
        "main",
        "--agent",
        &agent,
    ];
    let proposed = env.kapi(&words);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    let plan = batch.document("merge-plan.md");
    for part in [
        "- `notes.txt`: the source's version is taken\n- `deps.lock`: ",
        "`sh lock.sh` beside it brings it into step",
        "- `notes.*`: the branch's version stays",
    ] {
        assert!(plan.contains(part), "{part}\n{plan}");
    }
    batch.approve("3");
    let done = batch.resume("3", &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(lock_of(env, "dev"), "base\none\ntwo");
    assert_eq!(env.show("dev", "notes.txt"), "two");
    let text = "deps.lock is written anew by its own tool";
    assert!(done.stderr.contains(text), "{done:?}");
    assert!(!done.stderr.contains("resolve a conflict"), "{done:?}");
    let matrix = batch.document("conflict-matrix.md");
    let part = "- `sh lock.sh` exited with 0 for `deps.lock`";
    assert!(matrix.contains(part), "{matrix}");
    let view = env.json(&["status", "3"]);
    let found = &view["integrate"]["coverage"]["findings"];
    let found = found.as_array().unwrap().iter().map(|it| &it["path"]);
    assert_eq!(found.collect::<Vec<_>>(), ["notes.txt"], "{view:#}");
    assert_eq!(env.kapi(&["audit"]).code, 0);
}

#[test]
fn where_the_tool_fails_an_agent_is_told_and_resolves_it() {
    let batch = locked();
    let env = &batch.env;
    env.configure(
        "[integrate.conflicts]\n\"deps.lock\" = \"regenerate: echo out of step; exit 3\"\n\
         \"notes.txt\" = \"union\"\n",
    );
    needs(&batch, "one");
    needs(&batch, "two");
    let sed = "sed -i -e '/^<<<<<<< /d' -e '/^||||||| /,/^=======$/d' -e '/^>>>>>>> /d' list.txt";
    assert!(INTEGRATOR.contains(sed));
    let agent = env.script("locks.yaml", &INTEGRATOR.replace(sed, "sh lock.sh"));
    let words = [
        "integrate",
        "1",
        "2",
        "--create-dev",
        "main",
        "--agent",
        &agent,
    ];
    let proposed = env.kapi(&words);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    batch.approve("3");
    let done = batch.resume("3", &[]);
    assert_eq!(done.code, 0, "{done:?}");
    assert_eq!(lock_of(env, "dev"), "base\none\ntwo");
    assert_eq!(env.show("dev", "notes.txt"), "one\ntwo");
    let matrix = batch.document("conflict-matrix.md");
    for part in [
        "exited with 3 for `deps.lock`",
        "out of step",
        "> Keep both entries",
    ] {
        assert!(matrix.contains(part), "{part}\n{matrix}");
    }
}

/// What npm makes of a project without packages of its own yet.
const PACKAGE_LOCK: &str = r#"{
  "name": "app",
  "version": "1.0.0",
  "lockfileVersion": 3,
  "requires": true,
  "packages": {
    "": {
      "name": "app",
      "version": "1.0.0",
      "workspaces": [
        "libs/*"
      ]
    }
  }
}
"#;

#[test]
fn npm_writes_its_lock_file_anew_without_any_rule_of_a_person() {
    let batch = Batch::new();
    let env = &batch.env;
    let manifest = "{\"name\": \"app\", \"version\": \"1.0.0\", \"workspaces\": [\"libs/*\"]}\n";
    env.write("package.json", manifest);
    env.write("package-lock.json", PACKAGE_LOCK);
    env.git(&["add", "package.json", "package-lock.json"]);
    env.git(&["commit", "--quiet", "--message", "a package"]);
    for word in ["one", "two"] {
        let does = format!(
            "mkdir -p libs/{word} && echo '{{\"name\": \"{word}\", \"version\": \"1.0.0\"}}' > \
             libs/{word}/package.json && npm install --package-lock-only --ignore-scripts --no-audit --no-fund"
        );
        let holds = format!("grep -q '\"libs/{word}\": {{' package-lock.json");
        batch.goal(&format!("package {word}"), &does, &[&holds]);
    }
    let proposed = batch.integrate(&["1", "2", "--create-dev", "main"]);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    let plan = batch.document("merge-plan.md");
    let part = "- `package-lock.json`, which is foreseen not to fit: ";
    assert!(plan.contains(part), "{plan}");
    batch.approve("3");
    let done = batch.resume("3", &[]);
    assert_eq!(done.code, 0, "{done:?}");
    let lock = env.show("dev", "package-lock.json");
    let lock: serde_json::Value = serde_json::from_str(&lock).unwrap();
    for word in ["one", "two"] {
        let version = &lock["packages"][format!("libs/{word}")]["version"];
        assert_eq!(*version, "1.0.0", "{lock:#}");
    }
    assert!(!done.stderr.contains("resolve a conflict"), "{done:?}");
    assert!(
        done.stderr.contains("package-lock.json is written anew"),
        "{done:?}"
    );
}
