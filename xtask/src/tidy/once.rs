//! Rules about what is written once: each of these was written several times before, and the copies
//! drifted apart until one of them broke a promise.
//!
//! A name is looked for in the sources of our crates, tests aside.

use super::TidyFault;
use super::tree::SourceTree;

/// A name that only a few files may use.
struct RestrictedName {
    /// The name, as it stands in the source.
    name: &'static str,
    /// The files, or directories with a slash at their end, that may use it.
    homes: &'static [&'static str],
    /// What to do instead.
    instead: &'static str,
}

const ONCE: &[RestrictedName] = &[
    RestrictedName {
        name: concat!("Purpose::", "Judge"),
        homes: &["crates/kapi-agent/", "crates/kapi-run/src/asker.rs"],
        instead: "ask by `asker::ask`, which is the one way to ask an agent read-only",
    },
    RestrictedName {
        name: concat!("judge_", "answer("),
        homes: &[
            "crates/kapi-agent/",
            "crates/kapi-check/src/perform/judge/agent.rs",
        ],
        instead: "ask by `judge::ask`, which is the one judge",
    },
    RestrictedName {
        name: concat!("parse_", "verdict("),
        homes: &[
            "crates/kapi-agent/",
            "crates/kapi-check/src/perform/judge/model.rs",
        ],
        instead: "ask by `judge::ask`, which is the one judge",
    },
    RestrictedName {
        name: concat!("KAPI_JUDGE", "_TOKEN"),
        homes: &["crates/kapi-check/src/perform/judge/token.rs"],
        instead: "name it by `judge::token::TOKEN_VARIABLE`",
    },
    RestrictedName {
        name: concat!("Shell", "Line {"),
        homes: &[
            "crates/kapi-run/src/shell.rs",
            "crates/kapi-check/src/perform/prover/checkout.rs",
            "crates/kapi-check/src/perform/checks/shell.rs",
            "crates/kapi-task/src/perform/look.rs",
        ],
        instead: "prove work by `prover::Prover`, which is the one way to run a person's command on it",
    },
];

/// What is written once stays in its place.
pub(super) fn what_is_written_once_stays_there(tree: &SourceTree) -> Vec<TidyFault> {
    let mut faults = Vec::new();
    for file in tree.rust() {
        if !file.path.starts_with("crates/") || file.is_test() {
            continue;
        }
        let is_home =
            |home: &str| file.path == home || (home.ends_with('/') && file.path.starts_with(home));
        let foreign = ONCE
            .iter()
            .filter(|once| !once.homes.iter().any(|home| is_home(home)));
        for once in foreign {
            let used = file.numbered().filter(|(_, text)| text.contains(once.name));
            faults.extend(used.map(|(line, _)| TidyFault {
                path: file.path.clone(),
                line,
                message: format!(
                    "`{}` is used in its own place alone: {}",
                    once.name, once.instead
                ),
            }));
        }
    }
    faults
}

#[cfg(test)]
mod tests {
    use super::super::SourceTree;
    use super::what_is_written_once_stays_there;

    #[test]
    fn a_second_judge_is_found() {
        let verdict = concat!("let answer = parse_", "verdict(text, token);\n");
        let purpose = concat!("purpose: Purpose::", "Judge,\n");
        let files = [
            ("crates/kapi-check/src/perform/judge/model.rs", verdict),
            ("crates/kapi-run/src/asker.rs", purpose),
            ("crates/kapi-agent/tests/it/verdicts.rs", verdict),
            ("crates/kapi-check/src/perform/prove.rs", verdict),
            ("crates/kapi-run/src/asker_two.rs", purpose),
        ];
        let faults = what_is_written_once_stays_there(&SourceTree::of(&files));
        let paths: Vec<&str> = faults.iter().map(|fault| fault.path.as_str()).collect();
        assert_eq!(
            paths,
            [
                "crates/kapi-check/src/perform/prove.rs",
                "crates/kapi-run/src/asker_two.rs"
            ]
        );
    }
}
