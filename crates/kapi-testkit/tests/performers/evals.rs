//! What counts as well done: each kind of eval passes a real run or is its end.

use kapi_task::rules::definition::Definition;
use kapi_task::rules::task::{FailureKind, KernelTask};
use kapi_task::rules::task_state::KernelTaskState;

use crate::asks::failure;
use crate::machine::Machine;

fn define(machine: &mut Machine, evals: &str, line: &str) -> Definition {
    machine.define("fix", &format!("workspace: branch\neval:\n{evals}"), line)
}

fn check(evals: &str, line: &str, passes: bool) -> KernelTask {
    let mut machine = Machine::new();
    let definition = define(&mut machine, evals, line);
    let task = machine.trigger(&definition);
    let state = if passes {
        KernelTaskState::Completed
    } else {
        KernelTaskState::Failed
    };
    assert_eq!(task.state, state, "{evals} {task:#?}");
    if !passes {
        assert_eq!(failure(&task).kind, FailureKind::EvalFailed, "{task:#?}");
    }
    task
}

#[test]
fn exit_codes_mean_what_the_eval_says() {
    let eval = "  - {name: code, type: exit_code, pass_condition: 3}";
    check(eval, "exit 3", true);
    check(eval, "exit 0", false);
}

#[test]
fn a_command_runs_on_a_clean_checkout_of_the_work() {
    let eval = "  - {name: right, type: command, run: grep -q right answer.txt}";
    check(eval, "echo right > answer.txt", true);
    let task = check(eval, "echo other > answer.txt", false);
    let why = failure(&task);
    assert!(why.message.contains("eval right did not pass"), "{why:?}");
    assert!(why.message.contains("/kapi/fix-task_1"), "{why:?}");
    let soft = "  - {name: right, type: command, run: 'false', blocking: false}";
    let task = check(soft, "true", true);
    assert!(!task.report.as_ref().unwrap().evals[0].passed);
}

#[test]
fn words_are_matched() {
    let eval = "  - {name: says, type: regex, pattern: '(?m)^VERDICT: APPROVE$'}";
    check(eval, "echo well; echo VERDICT: APPROVE", true);
    check(eval, "echo well; echo VERDICT: NO", false);
}

#[test]
fn json_fits_its_schema() {
    let eval = "  - name: shape\n    type: json_schema\n    schema: {type: object, required: [n], properties: {n: {type: integer}}}";
    check(eval, r#"echo so:; echo '{"n": 3}'"#, true);
    check(eval, r#"echo '{"n": "three"}'"#, false);
}

#[test]
fn a_judge_answers_with_the_token_of_its_question() {
    let eval =
        "  - name: good\n    type: judge\n    criteria: [the answer is right]\n    agent: critic";
    let answer = |verdict: &str, token: &str| {
        format!(
            "---\nname: critic\ndescription: judges\nbackend: \"command:grep -q 'the answer is right' $KAPI_PROMPT_FILE && grep -q right answer.txt && echo '{{\\\"verdict\\\": \\\"{verdict}\\\", \\\"reason\\\": \\\"seen\\\", \\\"token\\\": \\\"'{token}'\\\"}}'\"\n---\nYou judge.\n"
        )
    };
    for (verdict, token, passes) in [
        ("done", "$KAPI_JUDGE_TOKEN", true),
        ("continue", "$KAPI_JUDGE_TOKEN", false),
        ("done", "0000000000000000", false),
    ] {
        let mut machine = Machine::new();
        machine.write(".pi/agents/critic.md", &answer(verdict, token));
        let definition = define(&mut machine, eval, "echo right > answer.txt");
        let task = machine.trigger(&definition);
        let found = task.report.as_ref().unwrap().evals[0].clone();
        assert_eq!(found.passed, passes, "{verdict} {token}: {found:?}");
    }
}

/// One form of answer for goals and loops: what is a verdict here is one there.
#[test]
fn a_program_judges_a_loop_as_it_judges_a_goal() {
    let eval =
        "  - name: good\n    type: judge\n    criteria: [the answer is right]\n    agent: critic";
    for (answer, passes) in [
        (r#"{"verdict":"done","reason":"fine"}"#, true),
        (r#"{"verdict":"done","reason":" "}"#, false),
        (r#"{"verdict":"done"}"#, false),
    ] {
        let mut machine = Machine::new();
        let profile = format!(
            "---\nname: critic\ndescription: judges\nbackend: \"command:echo '{}'\"\n---\nYou judge.\n",
            answer.replace('"', "\\\"")
        );
        machine.write(".pi/agents/critic.md", &profile);
        let definition = define(&mut machine, eval, "echo right > answer.txt");
        let task = machine.trigger(&definition);
        let found = task.report.as_ref().unwrap().evals[0].clone();
        assert_eq!(found.passed, passes, "{answer}: {found:?}");
    }
}

#[test]
fn a_number_must_be_no_worse_than_the_last_one() {
    let eval = "  - {name: size, type: metric, run: wc -c < answer.txt, better: lower, compared_to: last, tolerance: 1}";
    let mut machine = Machine::new();
    let mut run = |line: &str| {
        let definition = define(&mut machine, eval, line);
        let task = machine.trigger(&definition);
        let report = task.report.as_ref().unwrap();
        (task.state, report.evals[0].details.clone().unwrap())
    };
    assert_eq!(
        run("printf 12345 > answer.txt"),
        (KernelTaskState::Completed, "5, the first".to_owned())
    );
    assert_eq!(
        run("printf 123456 > answer.txt").0,
        KernelTaskState::Completed
    );
    let worse = run("printf 12345678 > answer.txt");
    assert_eq!(worse.0, KernelTaskState::Failed);
    assert!(worse.1.starts_with("8 after 6"), "{worse:?}");
    // What a bad run measured does not become the measure.
    assert!(
        run("printf 1234567890 > answer.txt")
            .1
            .starts_with("10 after 6")
    );
}

#[test]
fn verify_commands_of_a_loop_block() {
    let mut machine = Machine::new();
    let settings = "workspace: branch\nverify: [grep -q right answer.txt]";
    let definition = machine.define("fix", settings, "echo other > answer.txt");
    let task = machine.trigger(&definition);
    let why = failure(&task);
    assert_eq!(why.kind, FailureKind::EvalFailed);
    assert!(
        why.message
            .contains("eval verify did not pass: `grep -q right answer.txt` did not pass"),
        "{why:?}"
    );
}
