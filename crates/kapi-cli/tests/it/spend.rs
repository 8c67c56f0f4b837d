//! `kapi spend` and `[spend]`, `[prices]`: what was spent, and what may be.

use std::fs;
use std::path::Path;

use kapi_spend::record::{Ledger, LedgerHome};
use kapi_spend::rules::account::{Account, ModelRole, ReservationId};
use kapi_spend::rules::caps::Caps;
use kapi_spend::rules::decide::{Amount, SpendAnswer, SpendRequest};
use kapi_spend::rules::event::TurnUsage;
use kapi_spend::rules::tokens::TokenCounts;
use kapi_store::layout::project_key;
use kapi_sys::clock::{Clock, StepClock, SystemClock};
use kapi_sys::real_disk::RealDisk;
use serde_json::{Value, json};

use crate::environment::Environment;

/// What one turn costs in these tests; `None` for an unknown price.
pub(crate) struct Turn<'a> {
    goal: &'a str,
    agent: &'a str,
    role: ModelRole,
    model: &'a str,
    usd_micros: Option<u64>,
}

pub(crate) const EXECUTOR: Turn<'_> = Turn {
    goal: "001-fix-login",
    agent: "claude",
    role: ModelRole::Executor,
    model: "claude-opus-5-5",
    usd_micros: Some(1_250_000),
};

/// A machine whose repository has goals, so that it is a project.
pub(crate) fn project() -> (Environment, String) {
    let env = Environment::bare();
    fs::create_dir_all(env.repository().join(".ilchul/goals")).unwrap();
    let key = project_key(&fs::canonicalize(env.repository()).unwrap());
    (env, key)
}

pub(crate) fn spend(home: &Path, clock: &dyn Clock, project: &str, turns: &[Turn<'_>]) {
    let ledger = Ledger::open(LedgerHome {
        disk: &RealDisk,
        clock,
        home: home.to_path_buf(),
        owner: "test".to_owned(),
    })
    .unwrap();
    for (number, turn) in turns.iter().enumerate() {
        let id = ReservationId::new(project, turn.goal, &format!("{}-{number}", turn.agent));
        let request = SpendRequest {
            id: id.clone(),
            account: Account {
                project: project.to_owned(),
                goal: turn.goal.to_owned(),
                agent: turn.agent.to_owned(),
                role: turn.role,
                provider: "anthropic".to_owned(),
                model: turn.model.to_owned(),
            },
            amount: turn
                .usd_micros
                .map_or(Amount::Unknown, |wanted| Amount::Known { wanted, least: 1 }),
            goal: None,
        };
        let answer = ledger.reserve(&request, &Caps::none()).unwrap();
        assert!(matches!(answer, SpendAnswer::Granted { .. }));
        let used = TurnUsage {
            tokens: TokenCounts {
                input: 1_000,
                output: 200,
                cache_read: 30_000,
                cache_write: 4,
            },
            usd_micros: turn.usd_micros,
            ..TurnUsage::default()
        };
        ledger.settle(&id, &used).unwrap();
    }
}

fn keys(view: &Value) -> Vec<String> {
    let rows = view["rows"].as_array().unwrap();
    let keys = rows.iter().map(|row| {
        let (key, sum) = (row["key"].as_str().unwrap(), &row["sum"]);
        format!("{key} {}", sum["usd_micros"])
    });
    keys.collect()
}

#[test]
fn it_shows_where_money_and_tokens_went() {
    let (mut env, key) = project();
    let clock = env.at_noon();
    let judge = Turn {
        agent: "codex",
        role: ModelRole::Judge,
        model: "gpt-6-sol",
        usd_micros: Some(40_000),
        ..EXECUTOR
    };
    let other = Turn {
        goal: "002-b",
        usd_micros: Some(2_000_000),
        ..EXECUTOR
    };
    spend(&env.home(), &clock, &key, &[EXECUTOR, judge, other]);
    spend(&env.home(), &clock, "elsewhere", &[EXECUTOR]);
    let view = env.json(&["spend"]);
    assert_eq!(view["project"], json!(key));
    let goals = [
        format!("{key}/002-b 2000000"),
        format!("{key}/001-fix-login 1290000"),
    ];
    assert_eq!(keys(&view), goals);
    assert_eq!(
        view["total"],
        json!({
            "turns": 3, "unknown_turns": 0, "input_tokens": 3_000, "output_tokens": 600,
            "cache_read_tokens": 90_000, "cache_write_tokens": 12, "usd_micros": 3_290_000,
        })
    );
    assert_eq!((&view["caps"], &view["open"]), (&json!([]), &json!([])));
    for (by, expected) in [
        ("agent", vec!["claude 4500000", "codex (judge) 40000"]),
        (
            "model",
            vec![
                "anthropic/claude-opus-5-5 4500000",
                "anthropic/gpt-6-sol 40000",
            ],
        ),
    ] {
        assert_eq!(keys(&env.json(&["spend", "--all", "--by", by])), expected);
    }
    let by_project = env.json(&["spend", "--all", "--by", "project"]);
    assert_eq!(
        keys(&by_project),
        [format!("{key} 3290000"), "elsewhere 1250000".to_owned()]
    );
    let days = env.json(&["spend", "--by", "day"]);
    assert_eq!(days["rows"].as_array().unwrap().len(), 1);
    assert_eq!(days["rows"][0]["key"], days["today"]);
    let shown = env.kapi(&["spend"]);
    assert_eq!(shown.code, 0, "{shown:?}");
    assert!(
        shown.stdout.contains("$1.29") && shown.stdout.contains("$3.29"),
        "{shown:?}"
    );
    assert!(shown.stderr.contains("kapi spend --all"), "{shown:?}");
}

#[test]
fn nothing_spent_is_said() {
    let env = Environment::bare();
    let shown = env.kapi(&["spend"]);
    assert_eq!(
        (shown.code, shown.stdout.as_str()),
        (0, "Nothing was spent.\n")
    );
    assert!(
        !env.home().join(".ilchul").exists(),
        "looking leaves nothing behind"
    );
    assert_eq!(env.json(&["spend"])["rows"], json!([]));
}

#[test]
fn since_leaves_out_what_was_before() {
    let (env, key) = project();
    // 2026-08-22, and a day of the next year.
    spend(
        &env.home(),
        &StepClock::new(1_787_392_800_000),
        &key,
        &[EXECUTOR],
    );
    let later = Turn {
        goal: "002-b",
        ..EXECUTOR
    };
    spend(
        &env.home(),
        &StepClock::new(1_787_392_800_000 + 86_400_000),
        &key,
        &[later],
    );
    let days = |args: &[&str]| {
        let view = env.json(&[&["spend", "--by", "day"], args].concat());
        let rows = view["rows"].as_array().unwrap().clone();
        rows.iter()
            .map(|row| row["key"].as_str().unwrap().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(
        days(&["--since", "2026-08-22"]),
        ["2026-08-22", "2026-08-23"]
    );
    assert_eq!(days(&["--since", "2026-08-23"]), ["2026-08-23"]);
    assert_eq!(days(&["--all"]), ["2026-08-22", "2026-08-23"]);
    let refused = env.kapi(&["spend", "--since", "yesterday"]);
    assert_eq!(refused.code, 2);
    assert!(
        refused.stderr.contains("is not a date such as"),
        "{refused:?}"
    );
}

#[test]
fn an_unknown_price_is_said_and_not_counted_as_nought() {
    let (mut env, key) = project();
    let clock = env.at_noon();
    let unknown = Turn {
        model: "brand-new",
        usd_micros: None,
        ..EXECUTOR
    };
    spend(&env.home(), &clock, &key, &[unknown]);
    let shown = env.kapi(&["spend"]);
    assert!(
        shown.stdout.contains("unknown") && !shown.stdout.contains('$'),
        "{shown:?}"
    );
    assert!(
        shown.stderr.contains("[prices.\"anthropic/brand-new\"]"),
        "{shown:?}"
    );
    let view = env.json(&["spend"]);
    assert_eq!(view["unknown_models"], json!(["anthropic/brand-new"]));
    assert_eq!(view["total"]["unknown_turns"], 1);
    env.configure("[prices.\"anthropic/brand-new\"]\ninput = 1.5\noutput = 6\n");
    let shown = env.kapi(&["spend"]);
    assert!(
        shown.stderr.contains("now it is $1.50 in and $6.00 out"),
        "{shown:?}"
    );
    assert!(
        shown.stdout.contains("unknown"),
        "what was not known stays so: {shown:?}"
    );
    spend(&env.home(), &clock, &key, &[EXECUTOR]);
    let shown = env.kapi(&["spend"]);
    assert!(
        shown.stdout.contains("$1.25 and 1 of unknown cost"),
        "{shown:?}"
    );
}

#[test]
fn caps_are_the_persons_and_a_project_only_lowers_them() {
    let (mut env, key) = project();
    let clock = env.at_noon();
    spend(&env.home(), &clock, &key, &[EXECUTOR]);
    env.configure("[spend]\nmachine_per_day_usd = 20\nproject_per_day_usd = 5.5\n");
    env.write(
        ".ilchul/config.toml",
        "[spend]\nmachine_per_day_usd = 100.0\nproject_per_day_usd = 2.0\n",
    );
    let view = env.json(&["spend"]);
    assert_eq!(
        view["caps"],
        json!([
            { "scope": "project_day", "spent": 1_250_000, "reserved": 0, "cap": 2_000_000 },
            { "scope": "machine_day", "spent": 1_250_000, "reserved": 0, "cap": 20_000_000 },
        ])
    );
    let shown = env.kapi(&["spend"]);
    assert!(
        shown
            .stdout
            .contains("This project today: $1.25 of $2.00 spent, $0.00 more reserved."),
        "{shown:?}"
    );
    // A project has no say in prices.
    env.write(
        ".ilchul/config.toml",
        "[prices.\"a/b\"]\ninput = 0\noutput = 0\n",
    );
    env.kapi(&["spend"])
        .assert_error(2, &["config.toml:1", "prices"]);
    env.write(".ilchul/config.toml", "[spend]\nallow_unpriced = true\n");
    env.kapi(&["spend"])
        .assert_error(2, &["config.toml:2", "spend.allow_unpriced"]);
}

#[test]
fn what_is_written_wrongly_is_refused_with_its_line() {
    let env = Environment::bare();
    for (text, line, words) in [
        (
            "[spend]\nmachine_per_day_usd = -1\n",
            2,
            &["spend.machine_per_day_usd"][..],
        ),
        (
            "[spend]\n\nproject_per_day_usd = inf\n",
            3,
            &["spend.project_per_day_usd"],
        ),
        ("[spend]\nask_at_percent = 0\n", 2, &["from 1 to 100"]),
        ("[spend]\nask_at_percent = 101\n", 2, &["from 1 to 100"]),
        (
            "[prices.\"opus\"]\ninput = 1\noutput = 2\n",
            1,
            &["provider/model"],
        ),
        (
            "[prices.\"a/b\"]\ninput = 1\noutput = 0.0000001\n",
            1,
            &["`output`", "hint: "],
        ),
        ("[prices.\"a/b\"]\ninput = 1\n", 1, &["output"]),
        ("[spend]\nper_week = 1\n", 2, &["per_week"]),
    ] {
        let path = env.configure(text);
        let location = format!("{}:{line}: ", path.display());
        let words = [&[location.as_str()][..], words].concat();
        env.kapi(&["spend"]).assert_error(2, &words);
    }
    env.configure("[prices.\"openrouter/z/glm-5\"]\ninput = 0.5\noutput = 1.5\ncache_read = 0\n");
    assert_eq!(env.kapi(&["spend"]).code, 0);
}

#[test]
fn only_a_person_lets_spending_go_on() {
    let mut env = Environment::bare();
    let view = env.json(&["spend", "--go-on", "threshold"]);
    assert_eq!(view["allowed"], "threshold");
    let log = fs::read_to_string(env.home().join(".ilchul/spend/events.jsonl")).unwrap();
    assert!(
        log.contains(r#""type":"allowed""#) && log.contains(r#""kind":"human""#),
        "{log}"
    );
    assert_eq!(
        env.kapi(&["spend", "--go-on", "threshold", "--all"]).code,
        2
    );
    env.set("KAPI_RUN_ID", "001-a.t001-agent-a1");
    env.kapi(&["spend", "--go-on", "unknown-price"])
        .assert_error(3, &["only the user may", "hint: "]);
    let after = fs::read_to_string(env.home().join(".ilchul/spend/events.jsonl")).unwrap();
    assert_eq!(after, log);
}

#[test]
fn a_damaged_ledger_is_named_and_left_alone() {
    let (env, key) = project();
    spend(&env.home(), &SystemClock, &key, &[EXECUTOR]);
    let log = env.home().join(".ilchul/spend/events.jsonl");
    let damaged = fs::read_to_string(&log)
        .unwrap()
        .replacen("1250000", "1250001", 1);
    crate::environment::write(&log, &damaged);
    env.kapi(&["spend"])
        .assert_error(4, &["events.jsonl at line", "hint: "]);
    assert_eq!(fs::read_to_string(&log).unwrap(), damaged);
}
