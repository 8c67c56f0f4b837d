//! Several parties speak: the person's word holds, and every attempt against it is named.

use kapi_core::judge::Judge;

use super::{CheckSettings, SettingsLayer, resolve};
use crate::rules::proof::attribution::{
    Addition, Attribution, Authority, CheckPart, RefusedSetting,
};
use crate::rules::proof::policy::TestPolicy;

fn layer(by: Authority, settings: CheckSettings) -> SettingsLayer {
    SettingsLayer { by, settings }
}

fn agent(name: &str) -> Judge {
    Judge::Agent(name.to_owned())
}

fn strings(items: &[&str]) -> Vec<String> {
    items.iter().map(|item| (*item).to_owned()).collect()
}

/// What a project or a draft says that wants a done for nothing.
fn hostile() -> CheckSettings {
    CheckSettings {
        verify: Some(strings(&["true"])),
        protect: Vec::new(),
        judge: Some(Judge::Same),
        tests: Some(TestPolicy::Free),
        already_green: Some(true),
        changed_steering: Some(true),
        flagged_code: Some(true),
        strength: Some(false),
        turns: Some(9_000),
        tokens: Some(u64::MAX),
        usd_micros: Some(u64::MAX),
        wall_ms: Some(u64::MAX),
    }
}

#[test]
fn nobody_but_the_person_replaces_or_loosens_anything() {
    for by in [Authority::Draft, Authority::Project] {
        for person in [
            Authority::Flag,
            Authority::ContractFile,
            Authority::Settings,
        ] {
            let said = CheckSettings {
                verify: Some(strings(&["make check"])),
                protect: strings(&["tests/**"]),
                judge: Some(agent("codex")),
                tests: Some(TestPolicy::Locked),
                already_green: Some(false),
                changed_steering: Some(false),
                flagged_code: Some(false),
                strength: Some(true),
                turns: Some(5),
                tokens: Some(6),
                usd_micros: Some(7),
                wall_ms: Some(8),
            };
            // Whoever speaks first.
            let resolved = resolve(&[layer(by, hostile()), layer(person, said.clone())]);
            let mut expected = said;
            expected.verify = Some(strings(&["make check", "true"]));
            assert_eq!(resolved.settings, expected, "{by} against {person}");
            let added = Addition {
                by,
                part: CheckPart::Verify,
                value: "true".to_owned(),
            };
            assert_eq!(resolved.additions, [added]);
            let parts: Vec<CheckPart> = resolved.refusals.iter().map(|it| it.part).collect();
            assert_eq!(
                parts,
                [
                    CheckPart::Judge,
                    CheckPart::Tests,
                    CheckPart::Turns,
                    CheckPart::Tokens,
                    CheckPart::UsdMicros,
                    CheckPart::WallMs,
                    CheckPart::AlreadyGreen,
                    CheckPart::ChangedSteering,
                    CheckPart::FlaggedCode,
                    CheckPart::Strength,
                ]
            );
            let judge = RefusedSetting {
                by,
                part: CheckPart::Judge,
                value: "same".to_owned(),
                kept: "codex".to_owned(),
            };
            assert_eq!(resolved.refusals.first(), Some(&judge));
        }
    }
}

#[test]
fn nobody_but_the_person_loosens_what_was_left_open() {
    let resolved = resolve(&[layer(Authority::Project, hostile())]);
    let settings = resolved.settings;
    assert!(settings.policy().is_plain(), "{settings:?}");
    // A first limit narrows, however wide it is.
    assert_eq!(settings.turns, Some(9_000));
}

#[test]
fn a_persons_words_hold_in_their_order() {
    let says = |verify: &str, judge: &str, turns| CheckSettings {
        verify: Some(strings(&[verify])),
        protect: strings(&[verify]),
        judge: Some(agent(judge)),
        turns: Some(turns),
        ..CheckSettings::default()
    };
    let resolved = resolve(&[
        layer(Authority::Settings, says("c", "gemini", 1)),
        layer(Authority::ContractFile, says("b", "claude", 2)),
        layer(Authority::Flag, says("a", "codex", 3)),
    ]);
    let mut expected = says("a", "codex", 3);
    expected.protect = strings(&["a", "b", "c"]);
    assert_eq!(resolved.settings, expected);
    assert_eq!((resolved.additions, resolved.refusals), (vec![], vec![]));
}

#[test]
fn others_add_checks_and_narrow_what_was_not_fixed_for_this_goal() {
    let strict = CheckSettings {
        verify: Some(strings(&["make check", "make lint"])),
        protect: strings(&["ci/**"]),
        judge: Some(agent("anthropic/m")),
        tests: Some(TestPolicy::Locked),
        already_green: Some(false),
        strength: Some(true),
        turns: Some(3),
        ..CheckSettings::default()
    };
    let usual = CheckSettings {
        verify: Some(strings(&["make check"])),
        already_green: Some(true),
        turns: Some(20),
        ..CheckSettings::default()
    };
    let narrowed = resolve(&[
        layer(Authority::Settings, usual.clone()),
        layer(Authority::Project, strict.clone()),
    ]);
    assert_eq!(narrowed.settings, strict);
    assert_eq!(narrowed.additions.len(), 7);

    let fixed = resolve(&[
        layer(
            Authority::Flag,
            CheckSettings {
                tests: Some(TestPolicy::Free),
                ..usual
            },
        ),
        layer(Authority::Project, strict),
    ]);
    assert_eq!(fixed.settings.tests, Some(TestPolicy::Free));
    assert_eq!(fixed.settings.turns, Some(20));
    assert_eq!(fixed.settings.already_green, Some(true));
    assert_eq!(fixed.settings.strength, Some(true), "nobody fixed it");
    let parts: Vec<CheckPart> = fixed.refusals.iter().map(|it| it.part).collect();
    assert_eq!(
        parts,
        [CheckPart::Tests, CheckPart::Turns, CheckPart::AlreadyGreen]
    );
}

#[test]
fn a_person_who_wants_nothing_verified_is_left_alone() {
    let nothing = CheckSettings {
        verify: Some(Vec::new()),
        ..CheckSettings::default()
    };
    let resolved = resolve(&[
        layer(Authority::Flag, nothing),
        layer(Authority::Project, hostile()),
    ]);
    assert_eq!(resolved.settings.verify, Some(Vec::new()));
    assert_eq!(
        resolved.refusals.first().map(|it| it.part),
        Some(CheckPart::Verify)
    );
}

#[test]
fn a_judge_is_added_where_there_is_none_unless_the_person_wants_none_for_this_goal() {
    let said = |judge| CheckSettings {
        judge: Some(judge),
        ..CheckSettings::default()
    };
    for (by, expected) in [
        (Authority::Flag, Judge::None),
        (Authority::ContractFile, Judge::None),
        (Authority::Settings, agent("openai/gpt")),
    ] {
        let resolved = resolve(&[
            layer(by, said(Judge::None)),
            layer(Authority::Project, said(agent("openai/gpt"))),
        ]);
        assert_eq!(resolved.settings.judge, Some(expected), "{by}");
    }
}

#[test]
fn only_a_person_names_a_program_as_the_judge() {
    for (judge, expected) in [
        (agent("command:echo done"), None),
        (agent("script:judge.yaml"), None),
        (Judge::None, None),
        (agent("openai/gpt"), Some(agent("openai/gpt"))),
    ] {
        let said = CheckSettings {
            judge: Some(judge),
            ..CheckSettings::default()
        };
        for by in [Authority::Draft, Authority::Project] {
            let resolved = resolve(&[layer(by, said.clone())]);
            assert_eq!(resolved.settings.judge, expected);
        }
    }
}

#[test]
fn an_attribution_reads_as_it_was_written_and_says_nothing_where_all_is_the_persons() {
    let json = serde_json::to_string(&Attribution::default()).unwrap();
    assert_eq!(json, "{}");
    let resolved = resolve(&[layer(Authority::Project, hostile())]);
    let mut attribution = Attribution {
        additions: resolved.additions,
        refusals: resolved.refusals,
        ..Attribution::default()
    };
    let json = serde_json::to_string(&attribution).unwrap();
    let read: Attribution = serde_json::from_str(&json).unwrap();
    assert_eq!(read, attribution);
    let by = attribution.added_by(CheckPart::Verify, "true");
    assert_eq!(by, Some(Authority::Project));
    attribution.forget(Authority::Project);
    assert!(attribution.is_all_persons());
}
