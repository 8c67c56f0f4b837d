//! A channel from whoever started this process, which hangs up when something is no longer wanted.
//!
//! Nothing is ever said on it. Works across the walls of a sandbox, where signals and files may not.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use rustix::fs::{Mode, OFlags, open};

/// This side of the channel.
#[derive(Debug)]
pub struct HangUpChannel(File);

impl HangUpChannel {
    /// Opens the channel at a path such as `/proc/self/fd/3`; nothing where there is none.
    #[must_use]
    pub fn open(path: &Path) -> Option<Self> {
        // Without this flag it would be waited for somebody at the other side.
        let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let opened = open(path, flags, Mode::empty());
        opened.ok().map(|opened| Self(File::from(opened)))
    }

    /// Tells whether the other side has hung up.
    #[must_use]
    pub fn has_hung_up(&self) -> bool {
        matches!((&self.0).read(&mut [0]), Ok(0))
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsRawFd as _;
    use std::path::PathBuf;

    use super::HangUpChannel;

    #[test]
    fn it_has_hung_up_once_nobody_holds_the_other_side() {
        let (reader, writer) = std::io::pipe().unwrap();
        let path = PathBuf::from(format!("/proc/self/fd/{}", reader.as_raw_fd()));
        let channel = HangUpChannel::open(&path).unwrap();
        assert!(!channel.has_hung_up());
        drop(writer);
        assert!(channel.has_hung_up());
        assert!(HangUpChannel::open(&path).unwrap().has_hung_up());
        let none = PathBuf::from("/proc/self/fd/none");
        assert!(HangUpChannel::open(&none).is_none());
    }
}
