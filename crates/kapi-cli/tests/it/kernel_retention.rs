//! How long runs and branches of tasks that have ended are kept: by `kapi cleanup`, and by limits.

use serde_json::Value;

use crate::environment::Environment;
use crate::kernel_leavings::attempts;
use crate::kernel_task::{HONEST, branches, result};

fn names<'d>(document: &'d Value, list: &str, what: &str) -> Vec<&'d str> {
    let things = document[list].as_array().unwrap().iter();
    let things = things.filter(|thing| thing["what"] == what);
    things
        .map(|thing| thing["name"].as_str().unwrap())
        .collect()
}

#[test]
fn cleanup_removes_runs_and_merged_branches_and_names_what_stays() {
    let env = Environment::new();
    result(&env, HONEST, &[], 0);
    result(&env, "command:echo other > other.txt", &[], 0);
    env.git(&["merge", "--quiet", "kapi/task_1"]);
    let before = attempts(&env).len();
    assert_eq!(before, 2);

    let looked = env.json(&["cleanup", "--dry-run"]);
    assert_eq!(names(&looked, "removed", "branch"), ["kapi/task_1"]);
    assert_eq!(names(&looked, "kept", "branch"), ["kapi/task_2"]);
    assert_eq!(names(&looked, "kept", "logs"), ["2 runs"], "{looked:#}");
    assert_eq!(branches(&env), ["kapi/task_1", "kapi/task_2"]);

    // What ended only now is older than nothing.
    let recent = env.json(&["cleanup", "--older-than", "1h", "--logs"]);
    assert_eq!(names(&recent, "removed", "branch"), [""; 0], "{recent:#}");
    assert_eq!(names(&recent, "removed", "logs"), [""; 0], "{recent:#}");

    let done = env.json(&["cleanup", "--older-than", "1ms", "--logs"]);
    assert_eq!(
        names(&done, "removed", "branch"),
        ["kapi/task_1"],
        "{done:#}"
    );
    assert_eq!(names(&done, "removed", "logs").len(), 2, "{done:#}");
    let kept = done["kept"].as_array().unwrap();
    let unmerged = kept
        .iter()
        .find(|thing| thing["name"] == "kapi/task_2")
        .unwrap();
    assert_eq!(unmerged["why"], "its commit is neither pushed nor merged");
    assert_eq!(branches(&env), ["kapi/task_2"]);
    assert_eq!(attempts(&env).len(), 0);
    // The audit knows why they are gone, and the tasks are still known.
    let audit = env.kapi(&["audit"]);
    assert_eq!(audit.code, 0, "{audit:?}");
    assert_eq!(env.json(&["show", "task_1"])["state"], "completed");
}

#[test]
fn the_work_of_a_task_that_failed_is_on_no_branch_and_goes_once_it_is_merged() {
    let env = Environment::new();
    let agent = "command:echo 41 > answer.txt";
    let failed = result(&env, agent, &["--verify", "sh test.sh"], 5);
    let held = failed["work"]["branch"].as_str().unwrap().to_owned();
    assert!(held.starts_with("refs/kapi/held/"), "{failed:#}");
    assert_eq!(failed["work"]["commit"], env.commit_of(&held));
    assert_eq!(branches(&env), Vec::<String>::new());
    assert_eq!(env.json(&["diff", "task_1"])["paths"][0], "answer.txt");
    let words = env.kapi(&["show", "task_1"]);
    assert!(words.stdout.contains("kept"), "{words:?}");
    let refused = env.kapi(&["deliver", "task_1"]);
    let hint = format!("git branch <name> {held}");
    refused.assert_error(2, &["task_1 did not end well", &hint]);
    let kept = env.json(&["cleanup"]);
    assert_eq!(names(&kept, "kept", "branch"), [held.as_str()], "{kept:#}");
    assert_eq!(env.show(&held, "answer.txt"), "41");
    env.git(&["merge", "--quiet", &held]);
    let done = env.json(&["cleanup", "--older-than", "1ms"]);
    assert_eq!(names(&done, "removed", "branch"), [held.as_str()]);
    assert_eq!(env.git(&["for-each-ref", "refs/kapi"]), "");
}

#[test]
fn a_running_up_keeps_runs_within_the_limits() {
    let env = Environment::new();
    env.configure("[kernel]\nkeep_tasks = 2\n");
    for _ in 0..4 {
        result(&env, HONEST, &[], 0);
    }
    assert_eq!(attempts(&env).len(), 4);
    let once = env.kapi(&["up", "--once"]);
    assert_eq!(once.code, 0, "{once:?}");
    assert!(
        once.stderr.contains("removed the transcripts of 2 runs"),
        "{once:?}"
    );
    let left: Vec<String> = attempts(&env)
        .iter()
        .map(|dir| dir.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(
        left[0].starts_with("task_3-") && left[1].starts_with("task_4-"),
        "{left:?}"
    );
    // Work that is nowhere else stays, whatever the limits.
    assert_eq!(branches(&env).len(), 4);
    let audit = env.kapi(&["audit"]);
    assert_eq!(audit.code, 0, "{audit:?}");
}

#[test]
fn a_project_does_not_say_how_long_transcripts_are_kept() {
    let env = Environment::new();
    env.write(".ilchul/config.toml", "[kernel]\nkeep_days = 1\n");
    env.kapi(&["up", "--once"])
        .assert_error(2, &["config.toml:2", "keep_days"]);
}
