//! The suites' own multicall program: launcher, host stage, relay, and driver of one run.
//!
//! Knows nothing of what a suite expects, and treats every level alike.

mod request;

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use kapi_sandbox::callbacks::RunCallbacks;
use kapi_sandbox::error::SandboxError;
use kapi_sandbox::launch::run;
use kapi_sandbox::podman::options::{CgroupManager, PodmanOptions};
use kapi_sandbox::spec::{
    IsolationLevel, Mount, MountAccess, NetworkIsolation, OverlayLayer, SandboxSpec,
};
use kapi_sandbox::{init, podman};
use kapi_sys::cancel::Cancel;
use kapi_sys::process::{OutputLine, ProcessLimits, Program};
use request::{Reply, Request};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let code = match args.as_slice() {
        [first] if *first == init::ARGUMENT => init::init_main(),
        [first, second] if *first == podman::ARGUMENT => podman::relay_main(second),
        ["run"] => perform(),
        _ => 64,
    };
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

fn perform() -> i32 {
    let mut text = String::new();
    if std::io::stdin().read_to_string(&mut text).is_err() {
        return 65;
    }
    let Ok(request) = serde_json::from_str::<Request>(&text) else {
        return 66;
    };
    let Ok(reply) = serde_json::to_string(&answer(&request)) else {
        return 67;
    };
    i32::from(std::io::stdout().write_all(reply.as_bytes()).is_err())
}

fn answer(request: &Request) -> Reply {
    let cancel = Cancel::new();
    let cancel_on = request.cancel_on.as_bytes();
    let mut on_line = |line: OutputLine<'_>| {
        let (OutputLine::Stdout(line) | OutputLine::Stderr(line)) = line;
        if !cancel_on.is_empty() && line == cancel_on {
            cancel.raise();
        }
    };
    let callbacks = RunCallbacks {
        on_line: &mut on_line,
        on_listeners: &mut serve,
    };
    match run(&spec(request), program(request), &cancel, callbacks) {
        Ok(ran) => Reply {
            end: format!("{:?}", ran.finished.end),
            grade: ran.grade.to_string(),
            exceeded: ran
                .exceeded
                .map(|one| format!("{} {}", one.resource, one.limit))
                .unwrap_or_default(),
            stdout: ran.finished.stdout.text(),
            stderr: ran.finished.stderr.text(),
            stdout_bytes: ran.finished.stdout.bytes_total,
        },
        Err(error) => Reply {
            end: causes(&error),
            grade: String::new(),
            exceeded: String::new(),
            stdout: String::new(),
            stderr: String::new(),
            stdout_bytes: 0,
        },
    }
}

fn causes(error: &SandboxError) -> String {
    let mut text = error.to_string();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        text = format!("{text}: {cause}");
        next = cause.source();
    }
    text
}

/// Answers everybody who connects with the listener's number, until this process ends.
fn serve(listeners: Vec<TcpListener>) {
    for (number, listener) in listeners.into_iter().enumerate() {
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                // Somebody who went away needs no answer.
                drop(writeln!(stream, "listener {number}"));
            }
        });
    }
}

fn spec(request: &Request) -> SandboxSpec {
    let level = match request.level.as_str() {
        "native" => IsolationLevel::Native,
        "podman" => IsolationLevel::Podman,
        _ => IsolationLevel::None,
    };
    let own = std::env::current_exe().unwrap_or_default();
    let mut spec = SandboxSpec::new(level, &request.name, PathBuf::from(&request.home), own);
    spec.hostname.clone_from(&request.hostname);
    spec.mounts = request.mounts.iter().map(mount).collect();
    let pair = |(shown, at): &(String, String)| (shown.into(), at.into());
    spec.aliases = request.aliases.iter().map(pair).collect();
    let file = |(path, text): &(String, String)| (path.into(), text.clone().into_bytes());
    spec.files = request.files.iter().map(file).collect();
    let addresses = request.listeners.iter();
    spec.listeners = addresses
        .filter_map(|address| address.parse().ok())
        .collect();
    if request.is_on_host_network {
        spec.network = NetworkIsolation::Host;
    }
    for (name, value) in &request.resources {
        let resources = &mut spec.resources;
        let limit = match name.as_str() {
            "memory" => &mut resources.memory_bytes,
            "processes" => &mut resources.processes,
            "cpu" => &mut resources.cpu_millis,
            "files" => &mut resources.open_files,
            "size" => &mut resources.file_bytes,
            _ => &mut resources.disk_bytes,
        };
        *limit = Some(*value);
    }
    spec.nested_namespaces = request.is_nested;
    spec.podman = PodmanOptions {
        image: request.image.clone(),
        runtime: Some("runc".to_owned()),
        cgroup_manager: CgroupManager::Cgroupfs,
        ..PodmanOptions::default()
    };
    spec
}

fn mount((host, inside, access): &(String, String, String)) -> Mount {
    let access = match access.split(':').collect::<Vec<_>>().as_slice() {
        ["rw"] => MountAccess::ReadWrite,
        ["cow", upper, work, beneath @ ..] => MountAccess::CopyOnWrite(OverlayLayer {
            upper: upper.into(),
            work: work.into(),
            beneath: beneath.iter().map(Into::into).collect(),
        }),
        _ => MountAccess::ReadOnly,
    };
    Mount {
        host: host.into(),
        inside: inside.into(),
        access,
    }
}

fn program(request: &Request) -> Program {
    let (path, args) = request
        .argv
        .split_first()
        .map_or((String::new(), &[][..]), |(path, args)| {
            (path.clone(), args)
        });
    let passed = File::open(&request.passed).ok();
    let env = request.env.iter();
    Program {
        path: PathBuf::from(path),
        args: args.iter().map(Into::into).collect(),
        env: env
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        cwd: PathBuf::from(&request.cwd),
        stdin: request.stdin.clone().into_bytes(),
        pass_fds: passed.into_iter().map(OwnedFd::from).collect(),
        limits: ProcessLimits {
            deadline: Duration::from_millis(request.deadline_ms),
            idle: (request.idle_ms > 0).then(|| Duration::from_millis(request.idle_ms)),
            tail_bytes_max: 1024 * 1024,
            line_bytes_max: 1024 * 1024,
        },
    }
}
