//! What the relay finds around itself, before anything foreign runs.
//!
//! A container that is weaker than every container of ours must be is refused here; what may differ
//! from host to host is reported. Does not know what was asked for.

use std::fs;

use rustix::io::Errno;

use super::cgroup;
use super::channel::RelayEnvironment;
use crate::status::StepFailure;

/// The status lines that must be there, word for word.
const REQUIRED: &[(&str, &str)] = &[
    ("NoNewPrivs", "1"),
    ("CapInh", "0000000000000000"),
    ("CapPrm", "0000000000000000"),
    ("CapEff", "0000000000000000"),
    ("CapBnd", "0000000000000000"),
    ("CapAmb", "0000000000000000"),
];

/// Looks, and refuses what must not be.
pub(super) fn observe() -> Result<RelayEnvironment, StepFailure> {
    let status = read("/proc/self/status")?;
    for (name, expected) in REQUIRED {
        if field(&status, name) != Some(expected) {
            let found = field(&status, name).unwrap_or("nothing");
            let target = format!("{name}: {found} instead of {expected}");
            return Err(StepFailure::new("give up privileges", &target, Errno::PERM));
        }
    }
    Ok(RelayEnvironment {
        is_user_mapped: !is_identity(&read("/proc/self/uid_map")?),
        is_filtered: field(&status, "Seccomp") == Some("2"),
        ..cgroup::limits()
    })
}

fn read(path: &str) -> Result<String, StepFailure> {
    fs::read_to_string(path).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        StepFailure::new("read", path, errno)
    })
}

fn field<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let mut lines = status.lines().filter_map(|line| line.split_once(':'));
    lines
        .find(|(key, _)| *key == name)
        .map(|(_, value)| value.trim())
}

/// Tells whether a map gives everybody their own number.
fn is_identity(map: &str) -> bool {
    let numbers: Vec<&str> = map.split_whitespace().collect();
    numbers == ["0", "0", "4294967295"]
}

#[cfg(test)]
mod tests {
    use super::{field, is_identity};

    #[test]
    fn status_lines_are_read_by_their_whole_name() {
        let status =
            "Name:\tCapEff: 1\nCapEff:\t0000000000000000\nSeccomp_filters:\t3\nSeccomp:\t2\n";
        assert_eq!(field(status, "CapEff"), Some("0000000000000000"));
        assert_eq!(field(status, "Seccomp"), Some("2"));
        assert_eq!(field(status, "NoNewPrivs"), None);
    }

    #[test]
    fn only_the_first_map_is_the_hosts_own() {
        assert!(is_identity("         0          0 4294967295\n"));
        assert!(!is_identity(
            "         0          1       1001\n      1001          0          1\n"
        ));
    }
}
