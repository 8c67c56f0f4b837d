//! What the tests' sandboxes are entered by: the inner end of a sandbox, the embedded agent, and
//! the hook that asks before its tools.
//!
//! Knows nothing of what a test expects.

use std::io::Read as _;
use std::path::Path;
use std::process::ExitCode;
use std::{env, io};

use kapi_agent::launch::SCRIPT_AGENT_COMMAND;
use kapi_agent::script::runner;
use kapi_run::gate::client;
use kapi_sandbox::init;

fn main() -> ExitCode {
    let args: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let code = match words.as_slice() {
        [first, ..] if *first == init::ARGUMENT => init::init_main(),
        [first, ..] if *first == SCRIPT_AGENT_COMMAND => {
            let cwd = env::current_dir().unwrap_or_default();
            runner::script_main(&mut io::stdin().lock(), &mut io::stdout().lock(), &cwd)
        }
        ["hook", rest @ ..] => hook(rest),
        _ => 64,
    };
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Asks at the gate; whatever goes wrong is a no.
fn hook(words: &[&str]) -> i32 {
    let mut words = words.iter().skip_while(|word| **word != "--gate");
    let Some(gate) = words.nth(1) else {
        return 2;
    };
    let mut question = Vec::new();
    if io::stdin().lock().read_to_end(&mut question).is_err() {
        return 2;
    }
    match client::ask(Path::new(gate), &question) {
        Ok(()) => 0,
        Err(reason) => {
            drop(io::Write::write_all(&mut io::stderr(), reason.as_bytes()));
            2
        }
    }
}
