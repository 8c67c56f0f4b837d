//! Tests that start servers.

mod append;
mod credentials;
mod fold;
mod killed;
mod let_in;
mod queue;
mod travel;
