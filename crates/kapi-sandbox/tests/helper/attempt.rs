//! What the helper does as a payload: one raw call that a sandbox must answer in a known way.
//!
//! Prints the outcome and exits 0, so that a test compares text. Knows nothing of sandboxes.

use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

use rustix::mount::{MountFlags, UnmountFlags};
use rustix::thread::UnshareFlags;

use crate::{kernel, print};

/// How long a hoard is kept by who is not stopped: longer than any look at it takes to come.
const HOARDED: Duration = Duration::from_secs(300);

/// Tries the named thing.
pub(crate) fn attempt(words: &[&str]) -> i32 {
    let text = match words {
        ["mount"] => outcome(rustix::mount::mount(
            "none",
            "/tmp",
            "tmpfs",
            MountFlags::empty(),
            None,
        )),
        ["remount", path] => outcome(rustix::mount::mount_remount(*path, MountFlags::BIND, "")),
        ["umount", path] => outcome(rustix::mount::unmount(*path, UnmountFlags::DETACH)),
        ["unshare-user"] => outcome(unshare(UnshareFlags::NEWUSER)),
        ["unshare-mount"] => outcome(unshare(UnshareFlags::NEWNS)),
        ["hostname"] => outcome(rustix::system::sethostname(b"other")),
        ["chroot"] => outcome(rustix::process::chroot("/tmp")),
        ["chmod", path] => outcome(rustix::fs::chmod(
            *path,
            rustix::fs::Mode::from_raw_mode(0o777),
        )),
        ["loopback"] => talk_to_self(),
        ["connect", port] => connect(port),
        ["fds"] => open_descriptors(),
        ["kernel", rest @ ..] => kernel::attempt(rest),
        ["memory", mebibytes] => fill_memory(mebibytes, Duration::ZERO),
        ["hoard", mebibytes] => fill_memory(mebibytes, HOARDED),
        ["shared-memory", mebibytes] => fill_shared_memory(mebibytes),
        _ => "unknown".to_owned(),
    };
    print(&format!("{text}\n"))
}

fn outcome(result: Result<(), rustix::io::Errno>) -> String {
    result.map_or_else(
        |errno| format!("{:?}", errno.kind()),
        |()| "done".to_owned(),
    )
}

#[expect(
    unsafe_code,
    reason = "the helper has one thread and shares no descriptor table"
)]
fn unshare(flags: UnshareFlags) -> Result<(), rustix::io::Errno> {
    // SAFETY: the flags never hold CLONE_FILES.
    unsafe { rustix::thread::unshare_unsafe(flags) }
}

fn talk_to_self() -> String {
    let talk = || -> std::io::Result<String> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let mut client = TcpStream::connect(listener.local_addr()?)?;
        let (mut server, _) = listener.accept()?;
        client.write_all(b"heard")?;
        drop(client);
        let mut text = String::new();
        server.read_to_string(&mut text)?;
        Ok(text)
    };
    talk().unwrap_or_else(|error| error.kind().to_string())
}

fn connect(port: &str) -> String {
    let address = format!("127.0.0.1:{port}");
    TcpStream::connect(address)
        .map_or_else(|error| error.kind().to_string(), |_| "connected".to_owned())
}

fn open_descriptors() -> String {
    let listed = std::fs::read_dir("/proc/self/fd")
        .into_iter()
        .flatten()
        .flatten();
    let targets = listed.filter_map(|entry| {
        std::fs::read_link(entry.path())
            .ok()
            .map(|to| (entry.file_name(), to))
    });
    let mut lines: Vec<String> = targets
        .map(|(number, to)| format!("{}={}", number.display(), to.display()))
        .collect();
    lines.sort();
    lines.join(" ")
}

/// Takes memory page by page and keeps it for a time.
fn fill_memory(mebibytes: &str, kept: Duration) -> String {
    let mebibytes: usize = mebibytes.parse().unwrap_or(0);
    let mut taken = Vec::new();
    for _ in 0..mebibytes {
        taken.push(vec![1_u8; 1 << 20]);
    }
    std::thread::sleep(kept);
    let sum: usize = taken.iter().map(Vec::len).sum();
    format!("took {}", sum >> 20)
}

/// Takes memory that belongs to a file without a name and keeps it mapped.
fn fill_shared_memory(mebibytes: &str) -> String {
    let mebibytes: usize = mebibytes.parse().unwrap_or(0);
    let fill = || -> std::io::Result<()> {
        let mut file = std::fs::File::create("/dev/shm/hoard")?;
        for _ in 0..mebibytes {
            file.write_all(&[1_u8; 1 << 20])?;
        }
        Ok(())
    };
    fill().map_or_else(
        |error| error.kind().to_string(),
        |()| format!("took {mebibytes}"),
    )
}
