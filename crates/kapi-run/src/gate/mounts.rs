//! What a run's agent is shown of its gate: the socket where it asks, and hooks that it cannot change.
//!
//! Knows no question.

use kapi_agent::agent::AgentKind;
use kapi_agent::launch::gate::{GateSocket, sealed_file};
use kapi_sandbox::spec::Mount;

use super::PermissionGate;
use crate::confine::{self, SandboxConfig};
use crate::host_grants::HostGrants;

impl PermissionGate<'_> {
    /// Returns what is mounted into the sandbox: the socket's directory, the program, and over the
    /// agent's hooks themselves, so that it cannot write them.
    pub(crate) fn mounts(
        &self,
        kind: &AgentKind,
        config: &SandboxConfig<'_>,
        grants: &HostGrants,
    ) -> Vec<Mount> {
        let mut mounts = self.run_socket.mounts(&grants.self_exe);
        if mounts.is_empty() {
            return mounts;
        }
        let sealed = sealed_file(kind);
        mounts.extend(sealed.map(|file| {
            confine::read_only(
                &config.home.join(file),
                &config.home_seen(grants).join(file),
            )
        }));
        mounts
    }

    /// Returns the gate, as the agent sees it.
    pub fn seen_inside(&self) -> GateSocket<'_> {
        GateSocket {
            program: &self.program,
            socket: &self.socket,
        }
    }
}
