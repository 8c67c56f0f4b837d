//! What a caller hears of a program while it runs in a sandbox.
//!
//! The same for every level of isolation. Does not know how a program is run.

use std::net::TcpListener;

use kapi_sys::process::OutputLine;

/// The functions that are called while a program runs.
pub struct RunCallbacks<'a> {
    /// Takes each line of output, on the thread that called [`crate::launch::run`].
    pub on_line: &'a mut dyn FnMut(OutputLine<'_>),
    /// Takes the listeners of [`crate::spec::SandboxSpec::listeners`], in order, once, before the
    /// program starts; on the calling thread or one of the run's own. It must not wait for the
    /// program. Without listeners it is not called.
    pub on_listeners: &'a mut (dyn FnMut(Vec<TcpListener>) + Send),
}
