//! Copy-on-write mounts: an overlay whose writes go to a layer of the caller's.
//!
//! Mounted by a user namespace, so its marks are `user.overlay.*` attributes, and without any sync: a
//! layer that a power cut tore is thrown away, never trusted. Does not know what the layer is for.

use std::ffi::CStr;
use std::fmt::Arguments;
use std::fs;
use std::io::{IoSlice, IoSliceMut, Write as _};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::thread::sleep;
use std::time::{Duration, Instant};

use rustix::fs::{
    AtFlags, CWD, FlockOperation, Mode, OFlags, flock, openat, readlinkat_raw, renameat, statat,
};
use rustix::io::Errno;
use rustix::mount::{
    FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsconfig_set_flag,
    fsconfig_set_string, fsmount, fsopen,
};
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};

use super::completion::{Refusal, StepCompletion};
use super::mount::DetachedMount;
use crate::order::{Enclosure, OrderedAccess, SystemText};
use crate::status::StepFailure;

/// What overlayfs makes in its work directory, and what it is called once it is no longer used.
const USED: &CStr = c"work";
const ASIDE: &str = "used";
/// The longest that the mounts of an earlier sandbox may take to go, and how often that is looked at.
const LOCK_WAIT_MAX: Duration = Duration::from_secs(1);
const LOCK_PAUSE: Duration = Duration::from_millis(1);
/// The longest path, and the longest text that is put together here.
const PATH_BYTES_MAX: usize = 4096;
/// Descriptors of every directory of a stack; the kernel takes at most 255 bytes.
const WORDS_BYTES_MAX: usize = 255;
/// Lines of the mount table that are looked at for an explanation.
const MOUNTS_MAX: usize = 10_000;

/// Takes every layer of an order for this process and its children, for as long as one of them lives.
pub(super) fn lock_all(enclosure: &Enclosure) -> Result<Vec<OwnedFd>, StepFailure> {
    let uppers = enclosure
        .binds
        .iter()
        .filter_map(|bind| match &bind.access {
            OrderedAccess::CopyOnWrite { upper, .. } => Some(upper.path()),
            OrderedAccess::ReadOnly | OrderedAccess::ReadWrite => None,
        });
    uppers.map(|upper| lock(&upper)).collect()
}

/// Two overlays on one layer would each destroy what the other wrote. The mounts of a sandbox that was
/// over a moment ago are waited for.
fn lock(upper: &Path) -> Result<OwnedFd, StepFailure> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let held = openat(CWD, upper, flags, Mode::empty())
        .map_err(|errno| StepFailure::new("open", &upper.display().to_string(), errno))?;
    let until = Instant::now() + LOCK_WAIT_MAX;
    loop {
        let (why, errno) = match flock(&held, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => return Ok(held),
            Err(Errno::WOULDBLOCK) if Instant::now() < until => {
                sleep(LOCK_PAUSE);
                continue;
            }
            Err(Errno::WOULDBLOCK) => (", which another sandbox uses", Errno::BUSY),
            Err(other) => ("", other),
        };
        let target = format!("{}{why}", upper.display());
        return Err(StepFailure::new("flock", &target, errno));
    }
}

/// The copy-on-write mounts of an order, which the launcher makes while the leader furnishes the root.
#[derive(Debug)]
pub(super) struct LayerMounts {
    all: Vec<LayerMount>,
    /// The mounts travel here, in order; there is none where nothing is to be made.
    channel: Option<MountChannel>,
}

#[derive(Debug)]
struct MountChannel {
    launcher: OwnedFd,
    leader: OwnedFd,
}

impl LayerMounts {
    /// Prepares those of an order. Call in the launcher.
    pub(super) fn new(enclosure: &Enclosure) -> Result<Self, StepFailure> {
        let binds = enclosure.binds.iter();
        let all = binds.filter_map(|bind| match &bind.access {
            OrderedAccess::CopyOnWrite {
                upper,
                work,
                beneath,
            } => Some(LayerMount::new(&bind.host, beneath, [upper, work])),
            OrderedAccess::ReadOnly | OrderedAccess::ReadWrite => None,
        });
        let all = all.collect::<Result<Vec<_>, _>>()?;
        let channel = (!all.is_empty()).then(|| {
            let (kind, flags) = (SocketType::SEQPACKET, SocketFlags::CLOEXEC);
            let pair = socketpair(AddressFamily::UNIX, kind, flags, None);
            let pair = pair.map_err(|errno| StepFailure::new("socketpair", "the leader", errno));
            pair.map(|(launcher, leader)| MountChannel { launcher, leader })
        });
        Ok(Self {
            all,
            channel: channel.transpose()?,
        })
    }

    /// Returns those of an order that has none.
    pub(super) const fn none() -> Self {
        Self {
            all: Vec::new(),
            channel: None,
        }
    }

    /// Makes them and hands each to the leader; the launcher's half.
    pub(super) fn make(&self) {
        let Some(channel) = &self.channel else {
            return;
        };
        for layer in &self.all {
            let made = layer.mount();
            let given = made.and_then(|mount| hand_over(&channel.launcher, mount.as_fd()));
            layer.made.give(given);
        }
    }

    /// Waits for each to be made and takes it, in the order of the binds; the leader's half.
    pub(super) fn take(&self) -> impl Iterator<Item = Result<DetachedMount, StepFailure>> {
        let channel = self.channel.iter();
        let all = channel.flat_map(|channel| self.all.iter().map(move |layer| (layer, channel)));
        all.map(|(layer, channel)| {
            layer.made.hear()?.map_err(|refusal| layer.named(refusal))?;
            let mount = take_over(&channel.leader);
            let mount = mount.map_err(|errno| {
                layer.named(Refusal {
                    call: RECEIVE,
                    errno,
                })
            })?;
            Ok(DetachedMount::made(mount, layer.lower.name()))
        })
    }
}

/// Mounts a host directory with its writes going to a layer, in a process that shares its memory with
/// nobody.
///
/// File systems mounted below the directory cannot be part of it, and a user namespace may not look
/// under them, so they are an error.
pub(super) fn mount(
    lower: &SystemText,
    beneath: &[SystemText],
    upper_and_work: [&SystemText; 2],
) -> Result<DetachedMount, StepFailure> {
    let layer = LayerMount::new(lower, beneath, upper_and_work)?;
    let mount = layer.mount().map_err(|refusal| layer.named(refusal))?;
    Ok(DetachedMount::made(mount, layer.lower.name()))
}

/// One copy-on-write mount.
#[derive(Debug)]
struct LayerMount {
    lower: OpenDirectory,
    /// What shows through it, the topmost first.
    beneath: Vec<OpenDirectory>,
    upper: OpenDirectory,
    work: OpenDirectory,
    made: StepCompletion,
}

/// A directory that was opened before the root that is being built may cover it.
#[derive(Debug)]
struct OpenDirectory {
    path: PathBuf,
    fd: OwnedFd,
}

impl OpenDirectory {
    fn open(path: &SystemText) -> Result<Self, StepFailure> {
        let path = path.path();
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let fd = openat(CWD, &path, flags, Mode::empty())
            .map_err(|errno| StepFailure::new("open", &path.display().to_string(), errno))?;
        Ok(Self { path, fd })
    }

    fn name(&self) -> String {
        self.path.display().to_string()
    }
}

/// The calls that make one.
const STAT: u32 = 0;
const RENAME: u32 = 1;
const READ_LINK: u32 = 2;
const UPPER_INSIDE: u32 = 3;
const WORK_INSIDE: u32 = 4;
const OPEN: u32 = 5;
const CONFIGURE: u32 = 6;
const MOUNT: u32 = 7;
const SEND: u32 = 8;
const RECEIVE: u32 = 9;

impl LayerMount {
    fn new(
        lower: &SystemText,
        beneath: &[SystemText],
        [upper, work]: [&SystemText; 2],
    ) -> Result<Self, StepFailure> {
        let beneath = beneath.iter().map(OpenDirectory::open);
        Ok(Self {
            lower: OpenDirectory::open(lower)?,
            beneath: beneath.collect::<Result<_, _>>()?,
            upper: OpenDirectory::open(upper)?,
            work: OpenDirectory::open(work)?,
            made: StepCompletion::new(),
        })
    }

    /// Makes the mount. Only calls the kernel, so that the launcher may do it beside the leader.
    fn mount(&self) -> Result<OwnedFd, Refusal> {
        let [upper, work] = [&self.upper.fd, &self.work.fd];
        put_aside(work)?;
        for below in self.lowers() {
            apart(upper, below, UPPER_INSIDE)?;
            apart(work, below, WORK_INSIDE)?;
        }
        let flags = FsOpenFlags::FSOPEN_CLOEXEC;
        let context = fsopen(c"overlay", flags).map_err(Refusal::of(OPEN))?;
        let configured = self.configure(&context);
        configured.map_err(Refusal::of(CONFIGURE))?;
        let attributes = MountAttrFlags::MOUNT_ATTR_NOSUID | MountAttrFlags::MOUNT_ATTR_NODEV;
        fsmount(&context, FsMountFlags::FSMOUNT_CLOEXEC, attributes).map_err(Refusal::of(MOUNT))
    }

    /// Returns what the layer lies over, the topmost first.
    fn lowers(&self) -> impl Iterator<Item = &OwnedFd> {
        let beneath = self.beneath.iter().map(|part| &part.fd);
        std::iter::once(&self.lower.fd).chain(beneath)
    }

    fn configure(&self, context: &OwnedFd) -> Result<(), Errno> {
        // By descriptor, because the options of overlayfs give some characters of a path a meaning.
        let mut lower = OptionText::new();
        let lower = lower.descriptors(self.lowers())?;
        fsconfig_set_string(context, c"lowerdir", lower)?;
        let fds = [(c"upperdir", &self.upper.fd), (c"workdir", &self.work.fd)];
        for (option, fd) in fds {
            fsconfig_set_string(context, option, OptionText::new().descriptor(fd)?)?;
        }
        fsconfig_set_flag(context, c"userxattr")?;
        // Without this the end of every sandbox would sync the whole file system of its layer.
        fsconfig_set_flag(context, c"volatile")?;
        fsconfig_create(context)
    }

    /// Puts a refused call into words.
    fn named(&self, refusal: Refusal) -> StepFailure {
        let Refusal { call, errno } = refusal;
        let lower = self.lower.name();
        let used = || format!("{}/{}", self.work.name(), USED.to_string_lossy());
        let inside = |part: &OpenDirectory| format!("{}, which lies inside {lower}", part.name());
        let (call, target) = match call {
            STAT => ("fstatat", used()),
            RENAME => ("renameat", used()),
            READ_LINK => ("readlink", lower),
            UPPER_INSIDE => ("overlay", inside(&self.upper)),
            WORK_INSIDE => ("overlay", inside(&self.work)),
            OPEN => ("fsopen(overlay)", lower),
            CONFIGURE => ("fsconfig(overlay)", self.explained()),
            MOUNT => ("fsmount(overlay)", lower),
            SEND => ("sendmsg", lower),
            _ => ("recvmsg", lower),
        };
        StepFailure::new(call, &target, errno)
    }

    fn explained(&self) -> String {
        let name = self.lower.name();
        match mounted_below(&self.lower.path) {
            Some(location) => format!("{name}, which has another file system at {location}"),
            None => name,
        }
    }
}

/// Refuses a part of a layer that lies inside of what it lies over.
fn apart(part: &OwnedFd, lower: &OwnedFd, call: u32) -> Result<(), Refusal> {
    let errno = Errno::INVAL;
    match is_inside(part, lower).map_err(Refusal::of(READ_LINK))? {
        true => Err(Refusal { call, errno }),
        false => Ok(()),
    }
}

/// A layer inside of what it lies over would be seen, and grow, in its own overlay.
fn is_inside(part: &OwnedFd, lower: &OwnedFd) -> Result<bool, Errno> {
    let mut texts = [[MaybeUninit::<u8>::uninit(); PATH_BYTES_MAX]; 2];
    let [part_text, lower_text] = &mut texts;
    let link = |fd, text| real(fd, text);
    let (part, lower) = (link(part, part_text)?, link(lower, lower_text)?);
    let rest = part.strip_prefix(lower);
    Ok(rest.is_some_and(|rest| rest.is_empty() || lower == b"/" || rest.starts_with(b"/")))
}

/// Returns the path that a descriptor leads to now.
fn real<'a>(
    fd: &OwnedFd,
    text: &'a mut [MaybeUninit<u8>; PATH_BYTES_MAX],
) -> Result<&'a [u8], Errno> {
    let mut words = OptionText::new();
    let (path, rest) = readlinkat_raw(CWD, words.descriptor(fd)?, text)?;
    if rest.is_empty() {
        return Err(Errno::NAMETOOLONG);
    }
    Ok(path)
}

/// Puts aside what the last overlay left in its work directory, so that the kernel starts a new one.
///
/// Left in place, a mark in it would forbid the mount, and without the mark the kernel would first remove
/// all of it while the sandbox waits: on a disk that is told of every block given back, longer than
/// everything else here takes. It goes when the work directory is thrown away.
fn put_aside(work: &OwnedFd) -> Result<(), Refusal> {
    let used = match statat(work, USED, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(used) => used,
        // It was never used.
        Err(Errno::NOENT) => return Ok(()),
        Err(errno) => return Err(Refusal { call: STAT, errno }),
    };
    // No two files that exist at once have the same number.
    let mut words = OptionText::new();
    let aside = words.join(format_args!("{ASIDE}-{}", used.st_ino));
    let moved = aside.and_then(|aside| renameat(work, USED, work, aside));
    moved.map_err(Refusal::of(RENAME))
}

fn hand_over(channel: &OwnedFd, mount: BorrowedFd<'_>) -> Result<(), Refusal> {
    let mounts = [mount];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut carried = SendAncillaryBuffer::new(&mut space);
    if !carried.push(SendAncillaryMessage::ScmRights(&mounts)) {
        return Err(Refusal {
            call: SEND,
            errno: Errno::NOBUFS,
        });
    }
    let sent = sendmsg(
        channel,
        &[IoSlice::new(b"m")],
        &mut carried,
        SendFlags::NOSIGNAL,
    );
    sent.map(|_| ()).map_err(Refusal::of(SEND))
}

fn take_over(channel: &OwnedFd) -> Result<OwnedFd, Errno> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut carried = RecvAncillaryBuffer::new(&mut space);
    let mut word = [0];
    let mut words = [IoSliceMut::new(&mut word)];
    recvmsg(channel, &mut words, &mut carried, RecvFlags::CMSG_CLOEXEC)?;
    let mut fds = carried.drain().filter_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    fds.next().ok_or(Errno::BADF)
}

/// A short text for the kernel, put together without taking memory.
struct OptionText {
    bytes: [u8; WORDS_BYTES_MAX],
}

impl OptionText {
    const fn new() -> Self {
        Self {
            bytes: [0; WORDS_BYTES_MAX],
        }
    }

    /// Names a descriptor of this process.
    fn descriptor(&mut self, fd: &OwnedFd) -> Result<&CStr, Errno> {
        self.join(format_args!("/proc/self/fd/{}", fd.as_raw_fd()))
    }

    /// Names several, the way overlayfs separates the directories of a stack.
    fn descriptors<'a>(&mut self, fds: impl Iterator<Item = &'a OwnedFd>) -> Result<&CStr, Errno> {
        let mut rest = self.bytes.as_mut_slice();
        let mut separator = "";
        for fd in fds {
            let fd = fd.as_raw_fd();
            let written = rest.write_fmt(format_args!("{separator}/proc/self/fd/{fd}"));
            written.map_err(|_| Errno::NAMETOOLONG)?;
            separator = ":";
        }
        CStr::from_bytes_until_nul(&self.bytes).map_err(|_| Errno::NAMETOOLONG)
    }

    fn join(&mut self, text: Arguments<'_>) -> Result<&CStr, Errno> {
        let mut rest = self.bytes.as_mut_slice();
        rest.write_fmt(text).map_err(|_| Errno::NAMETOOLONG)?;
        CStr::from_bytes_until_nul(&self.bytes).map_err(|_| Errno::NAMETOOLONG)
    }
}

/// Finds a file system that is mounted below a directory, for an error that names it.
fn mounted_below(lower: &Path) -> Option<String> {
    // The root that is being built may cover it already; then it is looked for as it was named.
    let lower = lower.canonicalize().unwrap_or_else(|_| lower.to_owned());
    let table = fs::read_to_string("/proc/self/mountinfo").ok()?;
    let mut locations = table.lines().take(MOUNTS_MAX).filter_map(|line| {
        // The fifth word; a blank in it is written `\040`, and such a place is shown as it is written.
        line.split(' ').nth(4)
    });
    locations
        .find(|location| {
            let location = Path::new(location);
            location != lower && location.starts_with(&lower)
        })
        .map(str::to_owned)
}
