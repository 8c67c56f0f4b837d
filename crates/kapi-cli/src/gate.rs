//! The stop gate of a person's own sessions in a checkout: kept, proved, and asked by hooks.
//!
//! The rules stand in `kapi_check`; which client asks is known only where its hooks are read.

pub(crate) mod order;
pub(crate) mod proof;
pub(crate) mod record;
pub(crate) mod session_hook;
