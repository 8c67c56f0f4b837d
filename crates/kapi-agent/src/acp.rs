//! Agents that speak the Agent Client Protocol: `acp:<command>`.
//!
//! Kapi is their client. The client runs beside the agent, inside the sandbox (`bridge`), because the
//! protocol is a conversation over pipes; what is decided is asked for outside, at the run's gate.

pub mod bridge;
pub(crate) mod conversation;
pub(crate) mod turn;

use std::time::Duration;

/// The hidden command of this executable that is the client.
pub const ACP_AGENT_COMMAND: &str = "__acp-agent";
/// The variable that names the agent's program inside, in place of the first word of its command.
pub const PROGRAM_VARIABLE: &str = "KAPI_ACP_PROGRAM";
/// The version of the protocol that is spoken.
pub const PROTOCOL_VERSION: u64 = 1;
/// The channel that hangs up when the turn is no longer wanted: the first descriptor that the client is
/// given.
pub(crate) const STOP_CHANNEL: &str = "/proc/self/fd/3";
/// How long the client and its agent may take to end a turn that is no longer wanted.
pub(crate) const STOP_GRACE: Duration = Duration::from_secs(10);
