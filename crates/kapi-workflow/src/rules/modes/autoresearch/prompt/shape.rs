//! The shapes of answers, each as an example that parses.
//!
//! An example and its type belong together: a test reads every one.

use crate::rules::modes::autoresearch::role::AutoresearchRole;

/// Returns an example of what is answered in a role.
#[must_use]
pub const fn example(role: AutoresearchRole) -> &'static str {
    match role {
        AutoresearchRole::Drafter => CONTRACT,
        AutoresearchRole::Researcher => EXPERIMENT,
    }
}

const CONTRACT: &str = r#"{
  "objective": "Parse the corpus with fewer instructions, for the same result.",
  "metric": {"name": "instructions", "unit": "", "direction": "lower"},
  "secondary": [{"name": "peak_kb", "unit": "kb"}],
  "benchmark": "set -eu\ncargo build --release --offline --bin parse\nvalgrind --tool=none ./target/release/parse bench/corpus | grep '^METRIC'\n",
  "checks": "set -eu\ncargo test --offline\n",
  "no_checks": null,
  "benchmark_seconds": 300,
  "checks_seconds": 300,
  "scope": ["src/**"],
  "off_limits": ["src/bin/parse.rs", "bench/**", "tests/**"],
  "constraints": ["No new dependency.", "The public interface stays as it is."],
  "runs": 40,
  "failures": 15,
  "rule": {"keep": "plain", "samples": 1, "least_permille": 0}
}"#;

const EXPERIMENT: &str = r#"{
  "hypothesis": "The tokenizer copies each word; a slice of the input saves the allocation.",
  "description": "Tokens borrow from the input",
  "idea": null,
  "ideas": ["Look keywords up in a perfect hash"],
  "exhausted": false
}"#;

#[cfg(test)]
mod tests {
    use super::example;
    use crate::rules::modes::ModeAnswer;
    use crate::rules::modes::autoresearch::answer::AutoresearchAnswer;
    use crate::rules::modes::autoresearch::contract::sound;
    use crate::rules::modes::autoresearch::role::AutoresearchRole;

    #[test]
    fn every_example_is_an_answer() {
        for role in AutoresearchRole::ALL {
            let mut json = serde_json::Deserializer::from_str(example(role));
            let answer = ModeAnswer::read(role.spec(), &mut json).unwrap();
            if let ModeAnswer::Autoresearch(AutoresearchAnswer::Contract(contract)) = answer {
                assert_eq!(sound::check(&contract), Ok(()));
            }
        }
    }
}
