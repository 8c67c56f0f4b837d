//! Running a program in its sandbox to its end, while what it reaches is served.
//!
//! What it sees was decided before; how it ended is the caller's business.

use kapi_core::failure::Failure;
use kapi_sandbox::callbacks::RunCallbacks;
use kapi_sandbox::launch;
use kapi_sandbox::outcome::SandboxRun;
use kapi_sandbox::spec::SandboxSpec;
use kapi_sys::process::{OutputLine, ProcessEnd, ProcessLimits, Program};

use super::project::MountTargets;
use super::stopping::{StopNotice, run_told};
use super::{SandboxConfig, SandboxedProgram};
use crate::host_grants::HostGrants;
use crate::network::serve::NetworkServices;
use crate::tool_endpoint::ToolEndpoint;
use crate::{failure, home};

/// Bytes of one output line that are looked at.
const LINE_BYTES_MAX: usize = 4 << 20;

impl SandboxConfig<'_> {
    /// Runs a program in the sandbox to its end, and serves its network for as long.
    pub fn run(
        &self,
        grants: &HostGrants,
        payload: SandboxedProgram,
        access: &NetworkServices<'_>,
        on_line: &mut dyn FnMut(OutputLine<'_>),
    ) -> Result<SandboxRun, Failure> {
        let shown = self.spec(grants, &payload.program)?;
        let mut spec = shown.spec;
        let mut path_first = payload.path_first;
        path_first.extend(shown.path_first);
        path_first.extend(access.endpoint.map(ToolEndpoint::programs));
        spec.network = access.access.network();
        spec.benchmark = payload.benchmark;
        spec.listeners = access.access.addresses();
        self.make_capacity(grants, &spec)?;
        let _points = MountTargets::make(self.workspace, &self.workspace_access, &spec.mounts)?;
        let mut env = self.environment(grants, &path_first, access.access.environment());
        env.extend(payload.env);
        let mut program = Program {
            env,
            path: shown.program,
            args: payload.args,
            cwd: self.workspace_seen(grants).join(payload.below),
            stdin: payload.stdin,
            pass_fds: Vec::new(),
            limits: ProcessLimits {
                deadline: self.deadline,
                idle: self.idle,
                tail_bytes_max: payload.tail_bytes_max,
                line_bytes_max: LINE_BYTES_MAX,
            },
        };
        access.open(|on_listeners| {
            let callbacks = RunCallbacks {
                on_line,
                on_listeners,
            };
            let cancel = access.watch.cancel;
            let Some(grace) = payload.stop_grace else {
                return launch::run(&spec, program, cancel, callbacks)
                    .map_err(|error| failure::sandbox(&error));
            };
            let told = run_told(grace, cancel, |channel, cancel| {
                program.pass_fds.push(channel);
                launch::run(&spec, program, cancel, callbacks)
            });
            let (ran, notice) = told.map_err(|error| failure::plain(&error))?;
            let mut ran = ran.map_err(|error| failure::sandbox(&error))?;
            if notice == StopNotice::Told {
                ran.finished.end = ProcessEnd::Cancelled;
            }
            Ok(ran)
        })
    }

    /// Makes room in the private home for what is mounted there: it is kept between the turns of an
    /// agent, which may have put anything in the way.
    fn make_capacity(&self, grants: &HostGrants, spec: &SandboxSpec) -> Result<(), Failure> {
        let mounts = spec
            .mounts
            .iter()
            .map(|mount| (&mount.inside, mount.host.is_dir()));
        let aliases = spec.aliases.iter().map(|(_, also_at)| (also_at, true));
        for (inside, is_directory) in mounts.chain(aliases) {
            if let Ok(relative) = inside.strip_prefix(&grants.home)
                && !relative.as_os_str().is_empty()
            {
                home::make_capacity(self.home, relative, is_directory)?;
            }
        }
        Ok(())
    }
}
