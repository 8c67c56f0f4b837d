//! The stop gate of a person's own sessions in a checkout: a goal of a session, driven by hooks.
//!
//! The rules are those of goals; which client asks is known only where its hooks are read.

pub(crate) mod goal;
pub(crate) mod order;
pub(crate) mod record;
pub(crate) mod session_hook;
pub(crate) mod turn_end;
