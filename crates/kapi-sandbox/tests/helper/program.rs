//! The tests' own multicall program: launcher, driver of one run, and payload that tries things.
//!
//! Knows nothing of what a test expects.

mod attempt;
mod kernel;
mod request;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use kapi_sandbox::callbacks::RunCallbacks;
use kapi_sandbox::counter::KernelCounter;
use kapi_sandbox::error::SandboxError;
use kapi_sandbox::init::{ARGUMENT, init_main};
use kapi_sandbox::launch::{interact, run};
use kapi_sandbox::outcome::{ExceededLimit, SandboxRun};
use kapi_sandbox::probe::{LevelSupport, levels};
use kapi_sandbox::spec::{
    BenchmarkSetup, IsolationLevel, Mount, MountAccess, NetworkIsolation, OverlayLayer, SandboxSpec,
};
use kapi_sys::cancel::Cancel;
use kapi_sys::process::{OutputLine, ProcessLimits, Program};
use request::{Reply, Request};

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().collect();
    let args: Vec<&str> = args.iter().skip(1).map(String::as_str).collect();
    let code = match args.as_slice() {
        [first] if *first == ARGUMENT => init_main(),
        ["run"] => perform(),
        ["interact"] => meet(),
        ["ladder", sandboxes] => climb(sandboxes),
        ["try", rest @ ..] => attempt::attempt(rest),
        _ => 64,
    };
    ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX))
}

/// Prints text, and reports whether somebody was there to read it.
fn print(text: &str) -> i32 {
    i32::from(std::io::stdout().write_all(text.as_bytes()).is_err())
}

fn own_path() -> PathBuf {
    std::env::current_exe().unwrap_or_default()
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
    print(&reply)
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
    let Some(program) = program(request) else {
        return failed("no program", "");
    };
    let callbacks = RunCallbacks {
        on_line: &mut on_line,
        on_listeners: &mut serve,
    };
    match run(&spec(request), program, &cancel, callbacks) {
        Ok(SandboxRun {
            finished,
            grade,
            exceeded,
            met,
            counted,
            remains: _,
        }) => Reply {
            counted: counted.iter().map(|(_, count)| *count).collect(),
            grade: grade.to_string(),
            exceeded: exceeded.as_ref().map_or_else(String::new, named),
            met: met.iter().map(named).collect::<Vec<_>>().join(", "),
            end: format!("{:?}", finished.end),
            hint: String::new(),
            stdout: finished.stdout.text(),
            stderr: finished.stderr.text(),
            stdout_bytes: finished.stdout.bytes_total,
        },
        Err(error) => failed(&causes(&error), error.hint().unwrap_or_default()),
    }
}

fn named(limit: &ExceededLimit) -> String {
    format!("{} {}", limit.resource, limit.limit)
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

fn failed(why: &str, hint: &str) -> Reply {
    Reply {
        end: why.to_owned(),
        hint: hint.to_owned(),
        grade: String::new(),
        exceeded: String::new(),
        met: String::new(),
        stdout: String::new(),
        stderr: String::new(),
        stdout_bytes: 0,
        counted: Vec::new(),
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

fn spec(request: &Request) -> SandboxSpec {
    let mount = |(host, inside, access): &(String, String, String)| Mount {
        host: host.into(),
        inside: inside.into(),
        access: match access.split(':').collect::<Vec<_>>().as_slice() {
            ["cow", upper, work, beneath @ ..] => MountAccess::CopyOnWrite(OverlayLayer {
                upper: upper.into(),
                work: work.into(),
                beneath: beneath.iter().map(Into::into).collect(),
            }),
            ["rw"] => MountAccess::ReadWrite,
            _ => MountAccess::ReadOnly,
        },
    };
    let level = if request.level == "native" {
        IsolationLevel::Native
    } else {
        IsolationLevel::None
    };
    let mut spec = SandboxSpec::new(
        level,
        &request.name,
        PathBuf::from(&request.home),
        own_path(),
    );
    spec.hostname.clone_from(&request.hostname);
    spec.mounts = request.mounts.iter().map(mount).collect();
    spec.files = request
        .files
        .iter()
        .map(|(path, text)| (path.into(), text.clone().into_bytes()))
        .collect();
    spec.aliases = request
        .aliases
        .iter()
        .map(|(shown, at)| (shown.into(), at.into()))
        .collect();
    spec.listeners = request
        .listeners
        .iter()
        .filter_map(|address| address.parse().ok())
        .collect();
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
    spec.nested_namespaces = request.nested;
    spec.benchmark = BenchmarkSetup {
        processors: request.processors.clone(),
        counters: request.counters.iter().map(|name| counter(name)).collect(),
    };
    if request.network == "host" {
        spec.network = NetworkIsolation::Host;
    }
    spec
}

fn counter(name: &str) -> KernelCounter {
    match name {
        "cpu" => KernelCounter::CpuTime,
        "faults" => KernelCounter::PageFaults,
        _ => KernelCounter::Instructions,
    }
}

fn program(request: &Request) -> Option<Program> {
    let (path, args) = request.argv.split_first()?;
    Some(Program {
        path: Path::new(path).to_path_buf(),
        args: args.iter().map(Into::into).collect(),
        env: request
            .env
            .iter()
            .map(|(name, value)| (name.into(), value.into()))
            .collect(),
        cwd: PathBuf::from(&request.cwd),
        stdin: request.stdin.clone().into_bytes(),
        pass_fds: Vec::<OwnedFd>::new(),
        limits: ProcessLimits {
            deadline: Duration::from_millis(request.deadline_ms),
            idle: None,
            tail_bytes_max: 1024 * 1024,
            line_bytes_max: 1024 * 1024,
        },
    })
}

/// Runs the request in `KAPI_TEST_REQUEST` at this process's terminal, and then says how it ended.
fn meet() -> i32 {
    let text = std::env::var("KAPI_TEST_REQUEST").unwrap_or_default();
    let Ok(request) = serde_json::from_str::<Request>(&text) else {
        return 66;
    };
    let Some(program) = program(&request) else {
        return 67;
    };
    let met = interact(&spec(&request), program, &Cancel::new(), &mut serve);
    print(&match met {
        Ok(ran) => format!("ended {:?}\n", ran.finished.end),
        Err(error) => format!("failed {}\n", causes(&error)),
    })
}

fn climb(sandboxes: &str) -> i32 {
    let env = std::env::vars_os().collect();
    match levels(&own_path(), Path::new(sandboxes), &env) {
        Ok(ladder) => {
            let rungs = ladder.levels.iter().map(woken_lines);
            let facts = ladder.facts.iter();
            let facts = facts.map(|fact| format!("{}: {}\n", fact.name, fact.value));
            print(&rungs.chain(facts).collect::<String>())
        }
        Err(error) => print(&causes(&error)) + 1,
    }
}

fn woken_lines(support: &LevelSupport) -> String {
    let missing = support.missing.iter().map(|missing| {
        let errno = missing
            .source
            .as_ref()
            .and_then(std::io::Error::raw_os_error);
        format!(
            "{:?} misses {} (necessary: {}): {} on {}: {errno:?} {:?}\n",
            support.level,
            missing.what,
            missing.is_necessary,
            missing.call,
            missing.target,
            missing.hint
        )
    });
    let missing: String = missing.collect();
    let gives = support.gives.join("; ");
    format!(
        "{:?} works: {}: {gives}\n{missing}",
        support.level, support.works
    )
}
