//! A second real process, for tests that need one to hold, to wait and to be killed.
//!
//! The first argument says what it does. It only ever acts on what its arguments name.

use std::error::Error;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io, thread};

use kapi_sys::cancel::Cancel;
use kapi_sys::lock::Lock;
use kapi_sys::process::{
    OutputLine, ProcessEnd, ProcessLimits, Program, environment, parent_chain, run, run_quiet,
};
use kapi_sys::signal::interrupts;

type Done = Result<(), Box<dyn Error>>;

/// How long this process lives at most if its test forgets it.
const LIFE: Duration = Duration::from_secs(60);

fn main() -> Done {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    match args.as_slice() {
        ["hold-lock", lock, owner, ready] => hold_lock(lock, owner, ready),
        ["count-up", lock, counter, times] => count_up(lock, counter, times.parse()?),
        ["run-script", text] => show(&run_script(text, Vec::new())?),
        ["feed-deaf-program"] => feed_deaf_program(),
        ["interrupts", ready, seen] => watch_interrupts(ready, seen),
        ["count-output", text] => count_output(text),
        ["run-many"] => run_many(),
        ["ancestors"] => show_ancestors(),
        _ => Err(format!("no such role: {args:?}").into()),
    }
}

fn hold_lock(lock: &str, owner: &str, ready: &str) -> Done {
    let _lock = Lock::acquire(Path::new(lock), owner, 0)?;
    notify(ready, "held")?;
    thread::sleep(LIFE);
    Ok(())
}

fn count_up(lock: &str, counter: &str, times: u32) -> Done {
    for _ in 0..times {
        let _lock = Lock::acquire(Path::new(lock), "counting", 30_000)?;
        let value: u32 = fs::read_to_string(counter)?.parse()?;
        tell_bare(counter, &(value + 1).to_string())?;
    }
    Ok(())
}

fn run_script(text: &str, stdin: Vec<u8>) -> Result<String, Box<dyn Error>> {
    let finished = run_quiet(shell(text, stdin))?;
    Ok(format!("{:?} {}", finished.end, finished.stdout.text()))
}

fn shell(text: &str, stdin: Vec<u8>) -> Program {
    Program {
        path: PathBuf::from("/bin/sh"),
        args: vec!["-c".into(), text.into()],
        env: environment(),
        cwd: PathBuf::from("/"),
        stdin,
        pass_fds: Vec::new(),
        limits: ProcessLimits {
            deadline: LIFE,
            idle: None,
            tail_bytes_max: 64 * 1024,
            line_bytes_max: 1024,
        },
    }
}

/// Writes to a program that closes its input, in a process that a broken pipe would end.
#[expect(unsafe_code, reason = "the default action has to be put back by hand")]
fn feed_deaf_program() -> Done {
    // SAFETY: changes the action for a signal to the system's default, before any thread starts.
    unsafe {
        libc::signal(libc::SIGPIPE, libc::SIG_DFL);
    }
    let bytes = vec![b'x'; 4 * 1024 * 1024];
    let finished = run(
        shell("exec <&-; sleep 0.2", bytes),
        &Cancel::new(),
        &mut |_| {},
    )?;
    show(&format!("{:?}", finished.end))
}

fn watch_interrupts(ready: &str, seen: &str) -> Done {
    let interrupts = interrupts()?;
    notify(ready, "ready")?;
    while !interrupts.cancel().is_raised() {
        thread::sleep(Duration::from_millis(1));
    }
    notify(seen, &format!("{:?}", interrupts.signal()))?;
    thread::sleep(LIFE);
    Ok(())
}

fn show_ancestors() -> Done {
    for process in parent_chain() {
        let environ = process.environ.unwrap_or_default();
        let environ = String::from_utf8_lossy(&environ).replace(['\0', '\n'], " ");
        show(&format!("{} {:?} {environ}", process.pid, process.exe))?;
    }
    Ok(())
}

/// Shows how much came from a script, and by how much this process grew meanwhile.
fn count_output(text: &str) -> Done {
    let before = memory_peak_kib()?;
    let (mut n_lines, mut n_bytes) = (0, 0);
    let finished = run(shell(text, Vec::new()), &Cancel::new(), &mut |line| {
        let (OutputLine::Stdout(bytes) | OutputLine::Stderr(bytes)) = line;
        n_lines += 1;
        n_bytes += bytes.len();
    })?;
    let growth = memory_peak_kib()? - before;
    show(&format!(
        "{n_lines} {n_bytes} {} {growth}",
        finished.stdout.bytes_total
    ))
}

/// Returns the highest memory use of this process so far.
fn memory_peak_kib() -> Result<u64, Box<dyn Error>> {
    let number = status_line("VmHWM:")?;
    Ok(number.trim().trim_end_matches(" kB").parse()?)
}

fn status_line(name: &str) -> Result<String, Box<dyn Error>> {
    let status = fs::read_to_string("/proc/thread-self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    Ok(line.ok_or("no such line")?.to_owned())
}

/// Runs many programs, well and badly, and shows before and after what this process holds.
fn run_many() -> Done {
    let holds = || -> Result<String, Box<dyn Error>> {
        let n_open = fs::read_dir("/proc/self/fd")?.count();
        let children = fs::read_to_string("/proc/thread-self/children")?;
        Ok(format!(
            "{n_open} open, masked {}, children <{children}>",
            status_line("SigBlk:")?
        ))
    };
    show(&holds()?)?;
    for _ in 0..50 {
        let mut busy = shell("cat >/dev/null; echo out; echo err >&2", b"x".to_vec());
        busy.pass_fds = vec![fs::File::open("/dev/null")?.into()];
        let finished = run_quiet(busy)?;
        assert_eq!(finished.end, ProcessEnd::Exited(0));
        let mut missing = shell("", Vec::new());
        missing.path = PathBuf::from("/no/such/program");
        assert!(run_quiet(missing).is_err());
    }
    show(&holds()?)
}

/// Puts a whole line into a file at once.
fn notify(path: &str, line: &str) -> Done {
    let temporary = format!("{path}.tmp");
    tell_bare(&temporary, &format!("{line}\n"))?;
    Ok(fs::rename(temporary, path)?)
}

fn tell_bare(path: &str, text: &str) -> Done {
    Ok(fs::File::create(path)?.write_all(text.as_bytes())?)
}

fn show(line: &str) -> Done {
    Ok(writeln!(io::stdout(), "{line}")?)
}
