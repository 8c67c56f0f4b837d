//! What a run's agent may ask of its host: a call of one of its tools, and whether a tool may run.
//!
//! The run knows neither goals nor tasks; whoever starts it answers.

use kapi_core::failure::Failure;
use serde_json::Value;

use crate::gate::person::Person;

/// Answers the agent of one run.
pub trait RunService: Sync {
    /// Returns the run's name.
    fn run(&self) -> &str;

    /// Tells whether the tools that submit tasks are offered, too.
    fn offers_kernel_tools(&self) -> bool;

    /// Performs a call of a tool and returns its answer.
    fn call(&self, tool: &str, input: Value) -> Value;

    /// Returns the answer to a call that cannot be performed.
    fn refuse(&self, code: &'static str, message: String) -> Value;

    /// Tells whether nothing is ever asked about, allowed or not.
    fn asks_nothing(&self) -> Result<bool, Failure>;

    /// Returns what a person is asked about before it runs, and has not allowed yet.
    fn ask_before(&self) -> Result<Vec<String>, Failure>;

    /// Returns the person at the terminal, if there is one.
    fn person(&self) -> Option<&Person>;

    /// Records a person's yes. One that is not recorded is not given.
    fn allow(&self, person: &Person, entry: &str) -> Result<(), String>;

    /// Records a refused command, and tells whether it was recorded.
    fn record_refused(&self, entry: &str, command: &str) -> bool;

    /// Returns what an agent is told where only a person can allow an entry.
    fn needs_person(&self, entry: &str) -> String;
}
