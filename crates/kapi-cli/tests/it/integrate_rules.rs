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
    let proposed = batch.integrate(&["1", "2", "--create-dev", "main"]);
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
    // The first source's note is gone by the rule, which nobody explained yet.
    assert_eq!(
        lock_of(env, "chore/integrate-need-one-two"),
        "base\none\ntwo"
    );
    assert_eq!(env.show("chore/integrate-need-one-two", "notes.txt"), "two");
    assert!(
        done.stderr
            .contains("deps.lock is written anew by its own tool"),
        "{done:?}"
    );
    assert!(!done.stderr.contains("resolve a conflict"), "{done:?}");
    let matrix = batch.document("conflict-matrix.md");
    assert!(
        matrix.contains("- `sh lock.sh` exited with 0 for `deps.lock`"),
        "{matrix}"
    );
    let view = env.json(&["status", "3"]);
    let found = &view["integrate"]["coverage"]["findings"];
    let paths: Vec<_> = found
        .as_array()
        .unwrap()
        .iter()
        .map(|it| &it["path"])
        .collect();
    assert!(
        !paths.is_empty() && paths.iter().all(|path| *path == "notes.txt"),
        "{view:#}"
    );
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
