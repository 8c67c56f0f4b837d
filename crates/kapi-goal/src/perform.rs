//! The real world of goals: one match from effect to git, sandbox, agent and prover.
//!
//! Holds no state of its own: what must survive a crash is in git, in the run directory, or derived
//! from the effect again.

pub mod agent_run;
pub mod deliver;
pub mod goal_judge;
pub mod real;
pub mod session;
pub mod side_question;
pub mod side_run;
pub mod survey;
pub mod tools;
pub mod turn_spending;
pub mod verify;
pub mod waits;
