//! Automation for the workspace.
fn main() {}
