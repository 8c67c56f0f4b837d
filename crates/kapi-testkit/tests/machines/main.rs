//! Integration tests of the engine: the loop with scripted worlds, and the crash simulation.
#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "helpers of tests fail the test"
)]

mod budget;
mod concurrency;
mod damage;
mod denied;
mod documents;
mod driving;
mod home_crash;
mod inventory;
mod judge;
mod kernel_cost;
mod kernel_crash;
mod kernel_events;
mod kernel_goals;
mod kernel_leader;
mod kernel_leases;
mod kernel_worker;
mod launch_crash;
mod loading;
mod not_derived;
mod preferences;
mod project;
mod race;
mod real;
mod sim;
mod spend;
mod spend_crash;
mod stopping;
mod supervise;
mod support;
mod tape;
mod workflow_crash;
mod workflow_driving;
mod workflow_edits;
mod workflow_limits;
mod workflow_listing;
mod workflow_requests;
mod workflow_support;
