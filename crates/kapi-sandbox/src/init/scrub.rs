//! Wipes this process's own arguments and environment from where the kernel shows them.
//!
//! The leader stays visible inside as process 1, and its command line is readable to all. Knows
//! nothing of what was in them.

use std::io::Read as _;
use std::{fs, io};

use rustix::io::Errno;

use crate::status::StepFailure;
use crate::syscall::clear_memory;

/// `arg_start`, `arg_end`, `env_start` and `env_end` are fields 48 to 51; the first after the name is 3.
const ARGUMENT_START_AFTER_NAME: usize = 48 - 3;

/// More than fifty-two numbers and a name take.
const STAT_BYTES_MAX: usize = 2048;

/// Zeroes them. Whoever reads arguments must have done so before.
pub(super) fn clear_arguments_and_environment() -> Result<(), StepFailure> {
    let path = "/proc/self/stat";
    let failed = |errno| StepFailure::new("read", path, errno);
    let broken = |error: io::Error| failed(Errno::from_io_error(&error).unwrap_or(Errno::IO));
    // The kernel writes the line anew for each read, so it is read at once.
    let mut line = [0; STAT_BYTES_MAX];
    let mut file = fs::File::open(path).map_err(broken)?;
    let n_bytes = file.read(&mut line).map_err(broken)?;
    let stat = String::from_utf8_lossy(line.get(..n_bytes).unwrap_or_default());
    let [arg_start, arg_end, env_start, env_end] =
        bounds(&stat).ok_or_else(|| failed(Errno::INVAL))?;
    clear_memory(arg_start, arg_end);
    clear_memory(env_start, env_end);
    Ok(())
}

/// Reads the four addresses; the name in parentheses may hold anything, so it is skipped from behind.
fn bounds(stat: &str) -> Option<[usize; 4]> {
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name
        .split_whitespace()
        .skip(ARGUMENT_START_AFTER_NAME);
    let mut next = || fields.next().and_then(|field| field.parse().ok());
    Some([next()?, next()?, next()?, next()?])
}

#[cfg(test)]
mod tests {
    use super::bounds;

    #[test]
    fn a_name_with_parentheses_and_spaces_does_not_shift_the_fields() {
        let fields: Vec<String> = (3..=52).map(|field| field.to_string()).collect();
        let stat = format!("7 (a) (b 9) {}", fields.join(" "));
        assert_eq!(bounds(&stat), Some([48, 49, 50, 51]));
        assert_eq!(bounds("7 (a) 1 2"), None);
    }
}
