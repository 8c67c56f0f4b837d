//! One floor of trust: drafts, proposals and a project's files against the person's own words.
//!
//! Every attempt is one that once worked, or its sibling. What is refused is named.

use serde_json::{Value, json};

use crate::environment::{BRANCH, Environment, FIRST, TASK, write};
use crate::program::{Output, Run};

/// An agent that drafts, judges by always saying done, and writes the check instead of the answer.
fn cheat(draft: &str) -> String {
    let draft = draft.replace('\n', " ");
    format!(
        "command:if grep -q 'Draft a contract' \"$KAPI_PROMPT_FILE\"; then \
         printf '%s' '{draft}' | kapi agent set; exit 0; fi; \
         if grep -q 'You are the judge' \"$KAPI_PROMPT_FILE\"; then \
         token=$(grep -o '\"token\": *\"[^\"]*\"' \"$KAPI_PROMPT_FILE\" | head -n 1); \
         echo \"{{\\\"verdict\\\": \\\"done\\\", \\\"reason\\\": \\\"it is\\\"${{token:+, $token}}}}\"; exit 0; fi; \
         echo exit 0 > test.sh"
    )
}

fn draft(changes: &[(&str, Value)]) -> String {
    let mut draft = json!({
        "goal": "keep things as they are", "doneCriteria": "nothing is worse", "askBefore": [],
        "decisionStyle": "decide", "goalType": "ticket", "surfaces": [],
        "verifyCommand": "sh test.sh",
    });
    for (key, value) in changes {
        draft[*key] = value.clone();
    }
    draft.to_string()
}

fn new(env: &Environment, agent: &str, options: &[&str]) -> Output {
    let usual = ["goal", "new", TASK, "--draft", "--agent", agent];
    env.kapi(&[&usual[..], options].concat())
}

fn contract(env: &Environment) -> Value {
    env.json(&["show", "1", "--all"])["contract"].clone()
}

fn said(contract: &Value, list: &str) -> Vec<String> {
    let items = contract["attribution"][list].as_array();
    let text = |item: &Value| {
        let field = |name: &str| item[name].as_str().unwrap_or_default().to_owned();
        format!("{} {} {}", field("by"), field("part"), field("value"))
    };
    items.into_iter().flatten().map(text).collect()
}

#[test]
fn a_draft_chooses_no_other_judge() {
    for wish in [
        ("sameModelJudge", json!(true)),
        (
            "judgeModel",
            json!({"provider": "anthropic", "modelId": "easy"}),
        ),
    ] {
        let env = Environment::new();
        let strict = "command:echo '{\"verdict\": \"continue\", \"reason\": \"no\"}'";
        let agent = cheat(&draft(&[wish]));
        let output = new(&env, &agent, &["--judge", strict]);
        assert_eq!(output.code, 5, "{output:?}");
        let contract = contract(&env);
        assert_eq!(contract["judge"], json!({"by": "agent", "agent": strict}));
        let refused = said(&contract, "refusals");
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert!(refused[0].starts_with("draft judge "), "{refused:?}");
        assert!(
            output.stderr.contains("requested by the agent's draft"),
            "{output:?}"
        );
    }
}

#[test]
fn a_draft_widens_no_limit_and_protects_what_it_names() {
    let env = Environment::new();
    let wishes = [("maxTurns", json!(400)), ("sameModelJudge", json!(true))];
    let output = new(
        &env,
        &cheat(&draft(&wishes)),
        &["--turns", "2", "--yes", "--json"],
    );
    let run = Run::from(output);
    assert_ne!(run.status(), "done", "the check was rewritten");
    run.assert_nothing_published(&env);
    let contract = contract(&env);
    assert_eq!(contract["budget"]["turns"], 2);
    assert_eq!(contract["protect"], json!(["test.sh"]));
    assert_eq!(said(&contract, "refusals"), ["draft turns 400"]);
}

/// What a draft calls its task does not unprotect a check; what the person says does.
#[test]
fn only_the_persons_words_make_a_check_part_of_the_task() {
    for (task, expected) in [(TASK, json!(["test.sh"])), ("mend test.sh", json!([]))] {
        let env = Environment::new();
        let wishes = [
            ("goal", json!("rewrite test.sh")),
            ("sameModelJudge", json!(true)),
        ];
        let agent = cheat(&draft(&wishes));
        let output = env.kapi(&["goal", "new", task, "--draft", "--agent", &agent]);
        assert_eq!(output.code, 5, "{output:?}");
        assert_eq!(contract(&env)["protect"], expected, "{task}");
    }
}

#[test]
fn the_approval_shows_the_persons_words_beside_the_agents() {
    let env = Environment::new();
    let agent = cheat(&draft(&[("sameModelJudge", json!(true))]));
    let options = [
        "--criteria",
        "answer.txt holds 42",
        "--verify",
        "grep -q 42 answer.txt",
    ];
    let output = new(&env, &agent, &options);
    for line in [
        format!("  your text {TASK}"),
        "            done when: answer.txt holds 42".to_owned(),
        "  task      keep things as they are".to_owned(),
        "  verify    grep -q 42 answer.txt\n            sh test.sh  (added by the agent's draft)"
            .to_owned(),
        "(added by the agent's draft)".to_owned(),
    ] {
        assert!(output.stderr.contains(&line), "{line}: {}", output.stderr);
    }
    let attribution = contract(&env)["attribution"].clone();
    assert_eq!(
        attribution["original"],
        json!({"task": TASK, "done_criteria": "answer.txt holds 42"})
    );
    // Whoever works and whoever judges is told, too.
    env.kapi(&["goal", "approve", "1", "--yes"]);
    let runs = env.repository().join(".ilchul/runs");
    let prompts: Vec<String> = walk(&runs)
        .into_iter()
        .filter(|path| path.ends_with("prompt.md") || path.ends_with("prompt.txt"))
        .map(|path| std::fs::read_to_string(path).unwrap_or_default())
        .collect();
    let knows = prompts
        .iter()
        .filter(|text| text.contains("answer.txt holds 42"));
    assert!(knows.count() > 0, "{}", prompts.len());
}

fn walk(dir: &std::path::Path) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.path().is_dir() {
            found.extend(walk(&entry.path()));
        } else {
            found.push(entry.path());
        }
    }
    found
}

#[test]
fn a_projects_file_adds_and_narrows_and_nothing_else() {
    let env = Environment::new();
    env.write(
        ".ilchul/config.toml",
        "[goal]\nverify = [\"true\"]\njudge = \"none\"\nprotect = []\nturns = 900\n\
         tests = \"free\"\nalready_green = true\nallow_changed_setup = true\n",
    );
    let person =
        env.configure("[goal]\nverify = [\"sh test.sh\"]\njudge = \"command:true\"\nturns = 3\n");
    assert!(person.exists());
    let run = env.run("command:echo exit 0 > test.sh", &[]);
    assert_ne!(run.status(), "done");
    run.assert_nothing_published(&env);
    let contract = contract(&env);
    assert_eq!(contract["verify"], json!(["sh test.sh", "true"]));
    assert_eq!(
        contract["judge"],
        json!({"by": "agent", "agent": "command:true"})
    );
    assert_eq!(contract["budget"]["turns"], 3);
    assert_eq!(contract["protect"], json!(["test.sh"]));
    assert_eq!(contract.get("checks"), None, "nothing is loosened");
    assert_eq!(said(&contract, "additions"), ["project verify true"]);
    let refused = said(&contract, "refusals");
    assert_eq!(
        refused,
        [
            "project tests free",
            "project turns 900",
            "project already_green true",
            "project changed_steering true"
        ]
    );
}

#[test]
fn a_project_tightens_what_the_person_left_open_and_not_what_they_fixed() {
    let env = Environment::new();
    env.write(
        ".ilchul/config.toml",
        "[goal]\nverify = [\"test -e answer.txt\"]\ntests = \"locked\"\nprove_diff = true\n",
    );
    env.run(
        "command:echo 42 > answer.txt",
        &["--verify", "sh test.sh", "--turns", "1"],
    );
    let open = contract(&env);
    assert_eq!(open["verify"], json!(["sh test.sh", "test -e answer.txt"]));
    assert_eq!(open["checks"]["tests"], "locked");
    assert_eq!(open["checks"]["strength"], true);
    let fixed = ["--tests", "free", "--already-green", "--turns", "1"];
    env.run("command:echo 42 > answer.txt", &fixed);
    let fixed = env.json(&["show", "2", "--all"])["contract"].clone();
    assert_eq!(fixed["checks"]["tests"], "free");
    assert_eq!(fixed["checks"]["already_green"], true);
    assert_eq!(said(&fixed, "refusals"), ["project tests locked"]);
}

#[test]
fn flags_hold_over_a_contract_file_and_that_over_the_project() {
    let env = Environment::new();
    env.write(
        ".ilchul/config.toml",
        "[goal]\nverify = [\"true\"]\njudge = \"claude\"\n",
    );
    let file = env.root().join("contract.yaml");
    write(
        &file,
        format!(
            "goal: {TASK}\nverify: [\"true\"]\ntests: free\nalready_green: true\nturns: 9\n\
             judge: none\nagent: 'command:echo 42 > answer.txt'\n"
        ),
    );
    let file = file.display().to_string();
    let flags = [
        "run",
        "--contract",
        &file,
        "--yes",
        "--json",
        "--verify",
        "sh test.sh",
        "--tests",
        "locked",
        "--turns",
        "1",
    ];
    let first = Run::from(env.kapi(&flags));
    assert_ne!(first.status(), "blocked");
    let contract = contract(&env);
    assert_eq!(contract["verify"], json!(["sh test.sh", "true"]));
    assert_eq!(contract["judge"], json!({"by": "none"}));
    assert_eq!(contract["budget"]["turns"], 1);
    assert_eq!(contract["checks"]["tests"], "locked");
    assert_eq!(contract["checks"]["already_green"], true);
    assert_eq!(said(&contract, "refusals"), ["project judge claude"]);

    // The contract as Kapi writes it down is a contract file, too.
    let whole = env
        .goal_dir(FIRST)
        .join("contract.yaml")
        .display()
        .to_string();
    let text = std::fs::read_to_string(&whole)
        .unwrap()
        .replace(BRANCH, "feat/again");
    let copy = env.root().join("copy.yaml");
    write(&copy, text);
    let copy = copy.display().to_string();
    let again = Run::from(env.kapi(&["run", "--contract", &copy, "--yes", "--json"]));
    assert!(!again.status().is_empty());
    let second = env.json(&["show", "2", "--all"])["contract"].clone();
    assert_eq!(second["checks"], contract["checks"]);
    assert_eq!(second["verify"], contract["verify"]);
}

#[test]
fn a_proposal_is_no_flag_of_the_persons() {
    let env = Environment::new();
    env.configure(
        "[goal]\nagent = \"command:echo 42 > answer.txt\"\nverify = [\"test -e answer.txt\"]\n\
         judge = \"command:true\"\nturns = 4\n",
    );
    let input = env.root().join("input.json");
    let wishes = [("maxTurns", json!(90)), ("sameModelJudge", json!(true))];
    write(&input, draft(&wishes));
    let mut command = env.command(env!("CARGO_BIN_EXE_kapi"), &env.repository());
    command.args(["agent", "set"]);
    command.stdin(std::fs::File::open(input).unwrap());
    let proposed: Value = serde_json::from_str(&crate::program::finish(command).stdout).unwrap();
    assert_eq!(proposed["reason"], "not_confirmed", "{proposed}");
    let contract = contract(&env);
    assert_eq!(
        contract["verify"],
        json!(["test -e answer.txt", "sh test.sh"])
    );
    assert_eq!(
        contract["judge"],
        json!({"by": "agent", "agent": "command:true"})
    );
    assert_eq!(contract["budget"]["turns"], 4);
    assert_eq!(contract["protect"], json!(["test.sh"]));
    assert_eq!(contract["attribution"]["drafted"], true);
    assert_eq!(contract["attribution"].get("original"), None);
    let shown = env.kapi(&["goal", "approve", "1"]);
    assert!(
        format!("{shown:?}").contains("nothing: an agent proposed all of this"),
        "{shown:?}"
    );
}

#[test]
fn what_a_task_is_held_to_is_part_of_the_task() {
    let env = Environment::new();
    let task = |options: &[&str]| {
        let usual = [
            "task",
            "run",
            "x",
            "--agent",
            "command:true",
            "--detach",
            "--json",
        ];
        let submitted = env.kapi(&[&usual[..], options].concat()).document();
        let id = submitted["id"].as_str().unwrap().to_owned();
        let status = env.json(&["show", &id]).to_string();
        (id, status)
    };
    let (strict, text) = task(&[
        "--verify",
        "true",
        "--tests",
        "locked",
        "--protect",
        "tests/**",
    ]);
    assert!(text.contains("\"tests\":\"locked\""), "{text}");
    assert!(text.contains("\"protect\":[\"tests/**\"]"), "{text}");
    // It is another task than the same without.
    let (plain, text) = task(&["--verify", "true"]);
    assert_ne!(plain, strict);
    assert!(!text.contains("\"tests\":"), "{text}");
}
