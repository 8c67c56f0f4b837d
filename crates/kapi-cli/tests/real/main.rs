//! The four real agent CLIs through `kapi run`: installed from npm, in the native sandbox, asking
//! a scripted model, to a proved commit or to an honest account of why not.
//!
//! A CLI that cannot be installed fails the tests; nothing here is skipped.

#![expect(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    reason = "the whole binary is a test; clippy sees only the functions marked as one"
)]

mod acp;
mod autoresearch;
mod clients;
mod consent;
mod editions;
#[path = "../it/environment.rs"]
#[expect(
    dead_code,
    reason = "shared with the other binary, which uses the rest"
)]
mod environment;
mod faults;
mod first_hour;
mod integrate;
mod judges;
mod kernel_mcp;
mod killed;
mod limits;
mod machine;
mod person;
mod pi_branches;
mod pi_goal;
mod pi_goal_rig;
mod pi_guidance;
mod pi_host;
mod pi_hostile;
mod pi_judge;
mod pi_kernel;
mod pi_modes;
mod pi_package;
mod pi_publish;
mod pi_ralph;
mod pi_recent;
mod pi_screen;
mod pi_search;
mod pi_server;
mod pi_types;
mod pi_untouched;
#[path = "../it/program.rs"]
#[expect(
    dead_code,
    reason = "shared with the other binary, which uses the rest"
)]
mod program;
mod proved;
mod quota;
mod screen;
mod stop_gate;
#[path = "../it/terminal.rs"]
#[expect(
    dead_code,
    reason = "shared with the other binary, which uses the rest"
)]
mod terminal;
mod tools;
mod wire_tap;
mod workflow;
#[path = "../it/workflow_support.rs"]
#[expect(
    dead_code,
    reason = "shared with the other binary, which uses the rest"
)]
mod workflow_support;
