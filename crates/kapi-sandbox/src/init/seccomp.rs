//! The filter of system calls: what a program in a sandbox may never ask of the kernel.
//!
//! `table` says which calls, `assembler` turns that into one program for the kernel. Refused calls
//! fail as for an ordinary user, so that tools degrade; only foreign instruction sets are killed.

mod assembler;
mod table;

use crate::order::Enclosure;
use crate::status::StepFailure;
use crate::syscall::restrict::seccomp_filter;

/// Whether programs inside may build sandboxes of their own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SeccompProfile {
    /// No namespaces, mounts or changes of root.
    Strict,
    /// They may, within the user namespace they make for it.
    Nested,
}

impl SeccompProfile {
    /// Returns the profile that an order asks for.
    pub(super) fn of(enclosure: &Enclosure) -> Self {
        if enclosure.nested_namespaces {
            Self::Nested
        } else {
            Self::Strict
        }
    }
}

/// Puts this process and its descendants under the filter.
pub(crate) fn install(profile: SeccompProfile) -> Result<(), StepFailure> {
    let program = assembler::assemble(table::rules(profile));
    seccomp_filter(&program)
        .map_err(|errno| StepFailure::new("seccomp(SECCOMP_SET_MODE_FILTER)", "the leader", errno))
}

/// Keeps this process and its descendants from leaving the processors that they run on.
pub(crate) fn hold_processors() -> Result<(), StepFailure> {
    let program = assembler::assemble(table::processors());
    seccomp_filter(&program)
        .map_err(|errno| StepFailure::new("seccomp(SECCOMP_SET_MODE_FILTER)", "the leader", errno))
}

#[cfg(test)]
mod tests {
    use super::assembler::evaluate::{Call, CallResult, run};
    use super::{SeccompProfile, assembler, table};

    const NATIVE: u32 = assembler::ARCHITECTURE;

    fn call(number: i64, arguments: &[u64]) -> Call {
        let mut all = [0; 6];
        for (to, from) in all.iter_mut().zip(arguments) {
            *to = *from;
        }
        Call {
            number: u32::try_from(number).unwrap(),
            architecture: NATIVE,
            arguments: all,
        }
    }

    fn check(profile: SeccompProfile, call: &Call, expected: CallResult) {
        let program = assembler::assemble(table::rules(profile));
        assert_eq!(run(&program, call), expected, "{profile:?} {call:?}");
    }

    fn strict(number: i64, arguments: &[u64], expected: CallResult) {
        check(SeccompProfile::Strict, &call(number, arguments), expected);
    }

    fn nested(number: i64, arguments: &[u64], expected: CallResult) {
        check(SeccompProfile::Nested, &call(number, arguments), expected);
    }

    #[test]
    fn calls_that_are_not_native_are_killed() {
        for architecture in [0x4000_0003, 0x4000_0028, 0xC000_00F3, 0] {
            let mut foreign = call(libc::SYS_getpid, &[]);
            foreign.architecture = architecture;
            check(SeccompProfile::Strict, &foreign, CallResult::Killed);
            check(SeccompProfile::Nested, &foreign, CallResult::Killed);
        }
        let mut other_abi = call(libc::SYS_getpid, &[]);
        other_abi.number |= 0x4000_0000;
        check(SeccompProfile::Strict, &other_abi, CallResult::Killed);
        // The number by which a tracer says "none": the kernel answers that it does not exist.
        other_abi.number = u32::MAX;
        check(SeccompProfile::Strict, &other_abi, CallResult::Allowed);
    }

    #[test]
    fn ordinary_calls_pass_and_the_others_do_not() {
        for number in [
            libc::SYS_read,
            libc::SYS_write,
            libc::SYS_execve,
            libc::SYS_futex,
            libc::SYS_mmap,
            libc::SYS_wait4,
            libc::SYS_memfd_create,
            libc::SYS_pidfd_open,
            libc::SYS_renameat2,
            libc::SYS_seccomp,
            libc::SYS_landlock_restrict_self,
        ] {
            strict(number, &[], CallResult::Allowed);
            nested(number, &[], CallResult::Allowed);
        }
        for number in [
            libc::SYS_ptrace,
            libc::SYS_bpf,
            libc::SYS_io_uring_setup,
            libc::SYS_keyctl,
            libc::SYS_kexec_load,
            libc::SYS_userfaultfd,
        ] {
            strict(number, &[], CallResult::Refused(libc::EPERM));
            nested(number, &[], CallResult::Refused(libc::EPERM));
        }
    }

    #[test]
    fn namespaces_are_for_the_nested_profile() {
        strict(libc::SYS_clone3, &[], CallResult::Refused(libc::ENOSYS));
        nested(libc::SYS_clone3, &[], CallResult::Allowed);
        for kind in [
            libc::CLONE_NEWNS,
            libc::CLONE_NEWCGROUP,
            libc::CLONE_NEWUTS,
            libc::CLONE_NEWIPC,
            libc::CLONE_NEWUSER,
            libc::CLONE_NEWPID,
            libc::CLONE_NEWNET,
        ] {
            let flags = u64::from(kind.cast_unsigned() | libc::SIGCHLD.cast_unsigned());
            strict(libc::SYS_clone, &[flags], CallResult::Refused(libc::EPERM));
            nested(libc::SYS_clone, &[flags], CallResult::Allowed);
        }
        let thread = u64::from((libc::CLONE_VM | libc::CLONE_THREAD).cast_unsigned());
        strict(libc::SYS_clone, &[thread], CallResult::Allowed);
        for number in [libc::SYS_unshare, libc::SYS_mount, libc::SYS_move_mount] {
            strict(number, &[], CallResult::Refused(libc::EPERM));
            nested(number, &[], CallResult::Allowed);
        }
    }

    #[test]
    fn sockets_are_for_this_machine_and_the_internet() {
        let refused = CallResult::Refused(libc::EPERM);
        let (stream, datagram, raw) = (1, 2, 3);
        let cloexec = 0o2_000_000;
        for (family, kind, protocol, expected) in [
            (1, stream, 0, CallResult::Allowed),
            (2, stream | cloexec, 6, CallResult::Allowed),
            (10, datagram, 17, CallResult::Allowed),
            (16, raw | cloexec, 0, CallResult::Allowed),
            (16, raw, 9, refused),
            (2, raw, 1, refused),
            (10, raw | cloexec, 58, refused),
            (2, 10, 0, refused),
            (17, raw, 0, refused),
            (31, stream, 0, refused),
            (38, 5, 0, refused),
            (40, stream, 0, refused),
            // Only the low half of an argument reaches the kernel's `int`.
            (1 << 32 | 40, stream, 0, refused),
        ] {
            let arguments = [family, kind, protocol];
            strict(libc::SYS_socket, &arguments, expected);
        }
        strict(libc::SYS_socketpair, &[1, stream, 0], CallResult::Allowed);
        strict(libc::SYS_socketpair, &[40, stream, 0], refused);
    }

    #[test]
    fn arguments_decide_about_terminals_modes_and_personalities() {
        let refused = CallResult::Refused(libc::EPERM);
        strict(libc::SYS_ioctl, &[0, 0x5401], CallResult::Allowed);
        strict(libc::SYS_ioctl, &[0, 0x5412], refused);
        strict(libc::SYS_ioctl, &[0, 1 << 32 | 0x5412], refused);
        strict(libc::SYS_ioctl, &[0, 0x541C], refused);
        strict(libc::SYS_personality, &[0xFFFF_FFFF], CallResult::Allowed);
        strict(libc::SYS_personality, &[0x0004_0000], CallResult::Allowed);
        strict(libc::SYS_personality, &[0x0040_0000], refused);
        strict(libc::SYS_fchmod, &[3, 0o2755], CallResult::Allowed);
        strict(libc::SYS_fchmod, &[3, 0o4755], refused);
        strict(libc::SYS_fchmodat, &[3, 0, 0o4755], refused);
        let create = 0o100;
        strict(
            libc::SYS_openat,
            &[3, 0, create, 0o644],
            CallResult::Allowed,
        );
        strict(libc::SYS_openat, &[3, 0, 0, 0o4755], CallResult::Allowed);
        strict(libc::SYS_openat, &[3, 0, create, 0o4755], refused);
        // The set-group-id bit: on a directory it is ordinary, and only these calls make none.
        strict(libc::SYS_fchmodat, &[3, 0, 0o2755], CallResult::Allowed);
        strict(libc::SYS_openat, &[3, 0, create, 0o2755], refused);
        strict(libc::SYS_mknodat, &[3, 0, 0o102_755], refused);
        strict(libc::SYS_mknodat, &[3, 0, 0o104_755], refused);
        strict(libc::SYS_mknodat, &[3, 0, 0o010_644], CallResult::Allowed);
        strict(libc::SYS_mknodat, &[3, 0, 0o100_644], CallResult::Allowed);
        strict(libc::SYS_mknodat, &[3, 0, 0o020_000], refused);
        strict(libc::SYS_mknodat, &[3, 0, 0o060_600], refused);
        strict(libc::SYS_openat2, &[], CallResult::Refused(libc::ENOSYS));
    }
}
