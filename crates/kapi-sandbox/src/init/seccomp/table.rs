//! Which system calls a sandbox refuses, by what they would be good for.
//!
//! Data only. A call that is not named here is allowed: what an ordinary user may do is bounded by
//! namespaces, mounts and missing capabilities; this table takes away the kernel's odder corners.

use super::SeccompProfile;
use super::assembler::{CallAction, Clause};

/// Calls that make or enter namespaces and change what is mounted where.
const NAMESPACES: &[libc::c_long] = &[
    libc::SYS_unshare,
    libc::SYS_setns,
    libc::SYS_mount,
    libc::SYS_umount2,
    libc::SYS_pivot_root,
    libc::SYS_chroot,
    libc::SYS_fsopen,
    libc::SYS_fsconfig,
    libc::SYS_fsmount,
    libc::SYS_fspick,
    libc::SYS_move_mount,
    libc::SYS_open_tree,
    libc::SYS_mount_setattr,
    OPEN_TREE_ATTR,
    libc::SYS_sethostname,
    libc::SYS_setdomainname,
];

/// Calls that read or steer other processes.
const OTHER_PROCESSES: &[libc::c_long] = &[
    libc::SYS_ptrace,
    libc::SYS_process_vm_readv,
    libc::SYS_process_vm_writev,
    libc::SYS_pidfd_getfd,
    libc::SYS_kcmp,
    libc::SYS_migrate_pages,
    libc::SYS_move_pages,
];

/// Calls into parts of the kernel that had the most holes, or that do other calls' work unseen.
const DEEP_KERNEL: &[libc::c_long] = &[
    libc::SYS_bpf,
    libc::SYS_perf_event_open,
    libc::SYS_userfaultfd,
    libc::SYS_io_uring_setup,
    libc::SYS_io_uring_enter,
    libc::SYS_io_uring_register,
    libc::SYS_fanotify_init,
    libc::SYS_lookup_dcookie,
];

/// Calls on keyrings, which namespaces do not divide.
const KEYRINGS: &[libc::c_long] = &[libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key];

/// Calls that open files by number, past every directory on the way.
const FILES_BY_NUMBER: &[libc::c_long] =
    &[libc::SYS_open_by_handle_at, libc::SYS_name_to_handle_at];

/// Calls on the machine as a whole.
const MACHINE: &[libc::c_long] = &[
    libc::SYS_kexec_load,
    KEXEC_FILE_LOAD,
    libc::SYS_init_module,
    libc::SYS_finit_module,
    libc::SYS_delete_module,
    libc::SYS_reboot,
    libc::SYS_swapon,
    libc::SYS_swapoff,
    libc::SYS_quotactl,
    QUOTACTL_FD,
    libc::SYS_acct,
    libc::SYS_clock_settime,
    libc::SYS_clock_adjtime,
    libc::SYS_settimeofday,
    libc::SYS_adjtimex,
    libc::SYS_syslog,
    libc::SYS_vhangup,
    libc::SYS_nfsservctl,
];

/// Calls that only this instruction set has.
#[cfg(target_arch = "x86_64")]
const OLD: &[libc::c_long] = &[
    libc::SYS_iopl,
    libc::SYS_ioperm,
    libc::SYS_modify_ldt,
    libc::SYS_uselib,
    libc::SYS__sysctl,
    libc::SYS_ustat,
    libc::SYS_sysfs,
];
/// Calls that only this instruction set has.
#[cfg(target_arch = "aarch64")]
const OLD: &[libc::c_long] = &[];

/// A number that the binding does not name everywhere.
#[cfg(target_arch = "x86_64")]
const KEXEC_FILE_LOAD: libc::c_long = 320;
/// A number that the binding does not name everywhere.
#[cfg(target_arch = "aarch64")]
const KEXEC_FILE_LOAD: libc::c_long = 294;

/// Others; from 424 on they are the same for every instruction set.
const QUOTACTL_FD: libc::c_long = 443;
const FCHMODAT2: libc::c_long = 452;
const OPEN_TREE_ATTR: libc::c_long = 467;

/// `CLONE_NEWNS`, `NEWCGROUP`, `NEWUTS`, `NEWIPC`, `NEWUSER`, `NEWPID` and `NEWNET`.
const NEW_NAMESPACE: u32 = 0x7E02_0000;
/// `S_ISUID`. A program with it would run as the sandbox's user for whoever finds it on the host.
const SET_USER_ID: u32 = 0o4000;
/// The same and `S_ISGID`, for calls that make files only. Changes of mode keep the latter: their
/// arguments do not tell a file from a directory, and a directory hands the bit down to those below
/// it, so copying or unpacking a tree that has it would fail.
const SET_ANY_ID: u32 = SET_USER_ID | 0o2000;
/// `O_CREAT` and the bit of `O_TMPFILE` that is its own: only with these is there a mode.
const CREATES: u32 = 0o100 | 0o20_000_000;
/// The bits of a mode that say what kind of file it is.
const FILE_KIND: u32 = 0o170_000;
/// Character and block devices.
const DEVICES: &[u32] = &[0o020_000, 0o060_000];
/// `TIOCSTI` types into a terminal, `TIOCLINUX` pastes into a console.
const TYPING: &[u32] = &[0x5412, 0x541C];
/// The bits of a socket's kind without its flags.
const SOCKET_KIND: u32 = 0xF;
const UNIX: u32 = 1;
const INTERNET: &[u32] = &[2, 10];
const STREAM_OR_DATAGRAM: &[u32] = &[1, 2];
const NETLINK: u32 = 16;
/// The one protocol of it that the C library needs, to list interfaces.
const NETLINK_ROUTE: u32 = 0;
/// The usual one, without random addresses, and the question which one it is.
const PERSONALITIES: &[u32] = &[0, 0x0004_0000, u32::MAX];

/// Looks at a whole argument.
const WHOLE: u32 = u32::MAX;

const SOCKET: CallAction = CallAction::AllowIf(&[
    &[one_of(0, WHOLE, &[UNIX])],
    &[
        one_of(0, WHOLE, INTERNET),
        one_of(1, SOCKET_KIND, STREAM_OR_DATAGRAM),
    ],
    &[
        one_of(0, WHOLE, &[NETLINK]),
        one_of(2, WHOLE, &[NETLINK_ROUTE]),
    ],
]);
const SOCKET_PAIR: CallAction = CallAction::AllowIf(&[&[one_of(0, WHOLE, &[UNIX])]]);
const CONTROL: CallAction = CallAction::RefuseIf(&[&[one_of(1, WHOLE, TYPING)]]);
const CLONE: CallAction = CallAction::RefuseIf(&[&[any_bit(0, NEW_NAMESPACE)]]);
const PERSONALITY: CallAction = CallAction::AllowIf(&[&[one_of(0, WHOLE, PERSONALITIES)]]);
const MODE_FIRST: CallAction = CallAction::RefuseIf(&[&[any_bit(1, SET_USER_ID)]]);
const MODE_SECOND: CallAction = CallAction::RefuseIf(&[&[any_bit(2, SET_USER_ID)]]);
#[cfg(target_arch = "x86_64")]
const CREATE: CallAction = CallAction::RefuseIf(&[&[any_bit(1, SET_ANY_ID)]]);
#[cfg(target_arch = "x86_64")]
const OPEN: CallAction = CallAction::RefuseIf(&[&[any_bit(1, CREATES), any_bit(2, SET_ANY_ID)]]);
const OPEN_AT: CallAction = CallAction::RefuseIf(&[&[any_bit(2, CREATES), any_bit(3, SET_ANY_ID)]]);
#[cfg(target_arch = "x86_64")]
const NODE: CallAction =
    CallAction::RefuseIf(&[&[one_of(1, FILE_KIND, DEVICES)], &[any_bit(1, SET_ANY_ID)]]);
const NODE_AT: CallAction =
    CallAction::RefuseIf(&[&[one_of(2, FILE_KIND, DEVICES)], &[any_bit(2, SET_ANY_ID)]]);

/// Rules about arguments, and calls that callers have an older way for.
const BY_ARGUMENT: &[(libc::c_long, CallAction)] = &[
    (libc::SYS_socket, SOCKET),
    (libc::SYS_socketpair, SOCKET_PAIR),
    (libc::SYS_ioctl, CONTROL),
    (libc::SYS_personality, PERSONALITY),
    (libc::SYS_fchmod, MODE_FIRST),
    (libc::SYS_fchmodat, MODE_SECOND),
    (FCHMODAT2, MODE_SECOND),
    (libc::SYS_openat, OPEN_AT),
    (libc::SYS_mknodat, NODE_AT),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_chmod, MODE_FIRST),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_creat, CREATE),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_open, OPEN),
    #[cfg(target_arch = "x86_64")]
    (libc::SYS_mknod, NODE),
];

/// What only the strict profile refuses by argument. The arguments of `clone3` and `openat2` lie in
/// memory, where a filter cannot look, so these two do not exist.
const BY_ARGUMENT_STRICT: &[(libc::c_long, CallAction)] = &[
    (libc::SYS_clone, CLONE),
    (libc::SYS_clone3, CallAction::Absent),
    (libc::SYS_openat2, CallAction::Absent),
];

/// Returns the rules by which nothing leaves the processors that it runs on.
pub(super) fn processors() -> Vec<(u32, CallAction)> {
    numbered([(libc::SYS_sched_setaffinity, CallAction::Refuse)].into_iter())
}

/// Returns the rules of a profile by call number.
pub(super) fn rules(profile: SeccompProfile) -> Vec<(u32, CallAction)> {
    let always = [
        OTHER_PROCESSES,
        DEEP_KERNEL,
        KEYRINGS,
        FILES_BY_NUMBER,
        MACHINE,
        OLD,
    ];
    let (namespaces, by_argument): (&[_], &[_]) = match profile {
        SeccompProfile::Strict => (NAMESPACES, BY_ARGUMENT_STRICT),
        SeccompProfile::Nested => (&[], &[]),
    };
    let refused = always.into_iter().chain([namespaces]).flatten();
    let refused = refused.map(|number| (*number, CallAction::Refuse));
    let by_argument = BY_ARGUMENT.iter().chain(by_argument).copied();
    numbered(refused.chain(by_argument))
}

fn numbered(rules: impl Iterator<Item = (libc::c_long, CallAction)>) -> Vec<(u32, CallAction)> {
    rules
        .map(|(number, rule)| {
            let number = u32::try_from(number);
            assert!(number.is_ok(), "the kernel's call numbers are not negative");
            (number.unwrap_or_default(), rule)
        })
        .collect()
}

const fn one_of(argument: u32, mask: u32, values: &'static [u32]) -> Clause {
    Clause::OneOf {
        argument,
        mask,
        values,
    }
}

const fn any_bit(argument: u32, bits: u32) -> Clause {
    Clause::AnyBit { argument, bits }
}
