//! The shapes of answers, each as an example that parses.
//!
//! An example and its type belong together: a test reads every one.

use crate::rules::modes::ralph::role::RalphRole;

/// Returns an example of what is answered in a role.
#[must_use]
pub const fn example(role: RalphRole) -> &'static str {
    match role {
        RalphRole::Thesis => PLAN,
        RalphRole::Antithesis => OBJECTIONS,
        RalphRole::Synthesis => SYNTHESIS,
        RalphRole::Reviewer => FINDINGS,
        RalphRole::Accountant => ACCOUNT,
    }
}

const PLAN: &str = r#"{
  "summary": "Read the limit from the configuration and refuse what exceeds it.",
  "branch_type": "feat",
  "context": "src/upload.rs accepts any size; configuration is read in src/config.rs.",
  "options": [
    {"name": "check on read", "summary": "Count while reading, stop at the limit.", "rejected": null},
    {"name": "check the header", "summary": "Trust the announced length.", "rejected": "A header can lie."}
  ],
  "tasks": [
    {
      "id": "T-001",
      "title": "Limit in the configuration",
      "description": "Add `upload_bytes_max` with a default, read and validated as the others are.",
      "depends_on": [],
      "touches": ["src/config.rs", "tests/config.rs"],
      "isolation": "own",
      "verify": ["sh tests/run.sh config"],
      "criteria": ["AC-1"]
    }
  ],
  "criteria": [
    {"id": "AC-1", "text": "An upload above the limit is refused with 413.", "verify": "sh tests/run.sh upload", "exempt": null}
  ],
  "excluded": ["limits for each user"],
  "risks": ["clients that send no length"],
  "verify": ["sh tests/run.sh"]
}"#;

const OBJECTIONS: &str = r#"{
  "strongest": "The limit is checked after the whole body is in memory.",
  "tension": "Refusing early saves memory, but the client may see a reset connection.",
  "objections": [
    {"text": "T-001 and T-002 both change src/config.rs and have no edge.", "blocking": true},
    {"text": "The default of 1 GiB is not justified.", "blocking": false}
  ]
}"#;

const SYNTHESIS: &str = r#"{
  "verdict": "consensus",
  "answers": ["Taken over: T-002 depends on T-001 now.", "The spec names 1 GiB."],
  "dissent": [],
  "plan": {
    "summary": "Count while reading and refuse at the limit.",
    "branch_type": "feat",
    "context": "src/upload.rs accepts any size.",
    "options": [
      {"name": "check on read", "summary": "Count while reading.", "rejected": null},
      {"name": "check the header", "summary": "Trust the announced length.", "rejected": "A header can lie."}
    ],
    "tasks": [
      {
        "id": "T-001",
        "title": "Refuse at the limit",
        "description": "Count the bytes of the body and answer 413 above the limit.",
        "depends_on": [],
        "touches": ["src/upload.rs"],
        "isolation": "own",
        "verify": ["sh tests/run.sh upload"],
        "criteria": ["AC-1"]
      }
    ],
    "criteria": [
      {"id": "AC-1", "text": "An upload above the limit is refused with 413.", "verify": "sh tests/run.sh upload", "exempt": null}
    ],
    "excluded": [],
    "risks": [],
    "verify": ["sh tests/run.sh"]
  }
}"#;

const FINDINGS: &str = r#"{
  "approve": false,
  "summary": "Read the whole change and ran the tests in a copy; the limit is off by one.",
  "findings": [
    {
      "category": "correctness",
      "must_fix": true,
      "file": "src/upload.rs",
      "line": 42,
      "title": "A body of exactly the limit is refused",
      "detail": "`>=` where the spec says `above`; send exactly upload_bytes_max bytes to see it."
    },
    {
      "category": "simplification",
      "must_fix": false,
      "file": null,
      "line": null,
      "title": "Two counters say the same",
      "detail": "`seen` and `read` are always equal."
    }
  ],
  "replan": null
}"#;

const ACCOUNT: &str = r#"{
  "rationale": "Every upload path counts its bytes, and the check fails without the change.",
  "risks": ["Clients that never read the answer see a closed connection."],
  "follow_up": ["Document the limit for operators."]
}"#;
