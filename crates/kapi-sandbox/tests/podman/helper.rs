//! The container tests' own multicall program: host stage, relay, driver of one run, and payload.
//!
//! Knows nothing of what a test expects.

mod ask;

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::ExitCode;
use std::thread;
use std::time::Duration;

use ask::{Ask, Told};
use kapi_sandbox::callbacks::RunCallbacks;
use kapi_sandbox::launch::run;
use kapi_sandbox::outcome::SandboxRun;
use kapi_sandbox::podman::options::{CgroupManager, PodmanOptions, Volume};
use kapi_sandbox::podman::{ARGUMENT, interact, leftover, relay_main, sweep};
use kapi_sandbox::spec::{
    IsolationLevel, Mount, MountAccess, NetworkIsolation, OverlayLayer, SandboxSpec,
};
use kapi_sys::cancel::Cancel;
use kapi_sys::process::{OutputLine, ProcessLimits, Program};
use rustix::thread::UnshareFlags;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    let code = match args.as_slice() {
        [first, second] if *first == ARGUMENT => relay_main(second),
        ["run"] => perform(),
        ["interact"] => interact_here(),
        ["left"] => print(&list_left()),
        ["collect"] => print(&collect_left()),
        ["sweep"] => print(&sweep().map_or_else(|error| error.to_string(), |n| n.to_string())),
        ["try", what] => print(&attempt(what)),
        ["fetch", address] => print(&fetch(address)),
        _ => 64,
    };
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Prints text, and reports whether somebody was there to read it.
fn print(text: &str) -> i32 {
    i32::from(std::io::stdout().write_all(text.as_bytes()).is_err())
}

fn perform() -> i32 {
    let mut text = String::new();
    if std::io::stdin().read_to_string(&mut text).is_err() {
        return 65;
    }
    let Ok(ask) = serde_json::from_str::<Ask>(&text) else {
        return 66;
    };
    let Ok(reported) = serde_json::to_string(&answer(&ask)) else {
        return 67;
    };
    print(&reported)
}

/// Lists what dead launchers left: run and fate.
fn list_left() -> String {
    match leftover::list() {
        Ok(found) => found
            .iter()
            .map(|one| format!("{} {:?}\n", one.run, one.state))
            .collect(),
        Err(error) => error.to_string(),
    }
}

/// Collects all of it and returns what was refused.
fn collect_left() -> String {
    let found = match leftover::list() {
        Ok(found) => found,
        Err(error) => return error.to_string(),
    };
    let refused = found
        .iter()
        .filter_map(|one| leftover::collect(&one.id).err());
    refused.map(|error| format!("{error}\n")).collect()
}

/// Runs what a variable asks for at the terminal of this process.
fn interact_here() -> i32 {
    let text = std::env::var("KAPI_TEST_ASK").unwrap_or_default();
    let Ok(ask) = serde_json::from_str::<Ask>(&text) else {
        return 66;
    };
    let ran = interact(&spec(&ask), program(&ask), &Cancel::new(), &mut serve);
    print(&match ran {
        Ok(ran) => format!("ended {:?}\n", ran.finished.end),
        Err(error) => format!("failed to {error}\n"),
    })
}

fn answer(ask: &Ask) -> Told {
    let cancel = Cancel::new();
    let cancel_on = ask.cancel_on.as_bytes();
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
    match run(&spec(ask), program(ask), &cancel, callbacks) {
        Ok(SandboxRun {
            finished,
            grade,
            exceeded,
            met: _,
            counted: _,
            remains: _,
        }) => Told {
            end: format!("{:?}", finished.end),
            hint: String::new(),
            stdout: finished.stdout.text(),
            stderr: finished.stderr.text(),
            stdout_bytes: finished.stdout.bytes_total,
            grade: grade.to_string(),
            exceeded: exceeded
                .map(|one| format!("{} {}", one.resource, one.limit))
                .unwrap_or_default(),
        },
        Err(error) => {
            let mut end = error.to_string();
            let mut next = std::error::Error::source(&error);
            while let Some(cause) = next {
                end = format!("{end}: {cause}");
                next = cause.source();
            }
            Told {
                end,
                hint: error.hint().unwrap_or_default().to_owned(),
                stdout: String::new(),
                stderr: String::new(),
                stdout_bytes: 0,
                grade: String::new(),
                exceeded: String::new(),
            }
        }
    }
}

/// Answers every connection on threads that end with the helper.
fn serve(listeners: Vec<TcpListener>) {
    for listener in listeners {
        thread::spawn(move || greet(&listener));
    }
}

fn greet(listener: &TcpListener) {
    while let Ok((mut client, _)) = listener.accept() {
        if client.write_all(b"hello\n").is_err() {
            return;
        }
    }
}

fn spec(ask: &Ask) -> SandboxSpec {
    let own = std::env::current_exe().unwrap_or_default();
    let mut spec = SandboxSpec::new(
        IsolationLevel::Podman,
        &ask.name,
        PathBuf::from(&ask.home),
        own,
    );
    spec.hostname.clone_from(&ask.hostname);
    spec.mounts = ask.mounts.iter().map(mount).collect();
    let pair = |(shown, at): &(String, String)| (shown.into(), at.into());
    spec.aliases = ask.aliases.iter().map(pair).collect();
    let file = |(path, text): &(String, String)| (path.into(), text.clone().into_bytes());
    spec.files = ask.files.iter().map(file).collect();
    if ask.network == "host" {
        spec.network = NetworkIsolation::Host;
    }
    let listeners = ask.listeners.iter();
    spec.listeners = listeners
        .filter_map(|address| address.parse().ok())
        .collect();
    spec.resources.memory_bytes = ask.memory_bytes;
    spec.resources.processes = ask.processes;
    spec.resources.cpu_millis = ask.cpu_millis;
    spec.resources.open_files = ask.open_files;
    spec.resources.file_bytes = ask.file_bytes;
    spec.nested_namespaces = ask.nested_namespaces;
    spec.podman = PodmanOptions {
        image: ask.image.clone(),
        runtime: Some("runc".to_owned()),
        cgroup_manager: CgroupManager::Cgroupfs,
        security: ask.security.clone(),
        volumes: ask
            .volumes
            .iter()
            .map(|(name, inside)| Volume {
                name: name.clone(),
                inside: inside.into(),
            })
            .collect(),
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

fn program(ask: &Ask) -> Program {
    let (path, args) = ask
        .argv
        .split_first()
        .map_or((String::new(), &[][..]), |(path, args)| {
            (path.clone(), args)
        });
    let env = ask.env.iter();
    Program {
        path: PathBuf::from(path),
        args: args.iter().map(Into::into).collect(),
        env: env
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        cwd: PathBuf::from(&ask.cwd),
        stdin: ask.stdin.clone().into_bytes(),
        pass_fds: ask
            .passed
            .iter()
            .filter_map(|text| filled_pipe(text))
            .collect(),
        limits: ProcessLimits {
            deadline: Duration::from_millis(ask.deadline_ms),
            idle: None,
            tail_bytes_max: 1024 * 1024,
            line_bytes_max: 1024 * 1024,
        },
    }
}

fn filled_pipe(text: &str) -> Option<OwnedFd> {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::CLOEXEC).ok()?;
    rustix::io::write(&write, text.as_bytes()).ok()?;
    Some(read)
}

/// Tries one raw call that a container must answer in a known way.
fn attempt(what: &str) -> String {
    let result = match what {
        "mount" => rustix::mount::mount(
            "none",
            "/tmp",
            "tmpfs",
            rustix::mount::MountFlags::empty(),
            None,
        ),
        "umount" => rustix::mount::unmount("/workspace", rustix::mount::UnmountFlags::DETACH),
        "unshare-user" => unshare(UnshareFlags::NEWUSER),
        "unshare-mount" => unshare(UnshareFlags::NEWNS),
        "hostname" => rustix::system::sethostname(b"other"),
        "chroot" => rustix::process::chroot("/tmp"),
        _ => Err(rustix::io::Errno::INVAL),
    };
    let text = result.map_or_else(
        |errno| format!("{:?}", errno.kind()),
        |()| "done".to_owned(),
    );
    format!("{text}\n")
}

#[expect(
    unsafe_code,
    reason = "the helper has one thread and shares no descriptor table"
)]
fn unshare(flags: UnshareFlags) -> Result<(), rustix::io::Errno> {
    // SAFETY: the flags never hold CLONE_FILES.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

fn fetch(address: &str) -> String {
    let mut text = String::new();
    match TcpStream::connect(address).and_then(|mut stream| stream.read_to_string(&mut text)) {
        Ok(_) => text,
        Err(error) => format!("{}\n", error.kind()),
    }
}
