//! Calls that a sandbox must refuse, made raw, so that no library stands between the attempt and the
//! kernel.
//!
//! Says what the kernel answered and nothing of what it should have.

use std::ffi::CString;
use std::io::Error;

/// Calls that can be made with no arguments at all: the filter answers before any is looked at.
const BARE: &[(&str, libc::c_long)] = &[
    ("unshare", libc::SYS_unshare),
    ("setns", libc::SYS_setns),
    ("mount", libc::SYS_mount),
    ("umount2", libc::SYS_umount2),
    ("pivot_root", libc::SYS_pivot_root),
    ("chroot", libc::SYS_chroot),
    ("fsopen", libc::SYS_fsopen),
    ("fsconfig", libc::SYS_fsconfig),
    ("fsmount", libc::SYS_fsmount),
    ("fspick", libc::SYS_fspick),
    ("move_mount", libc::SYS_move_mount),
    ("open_tree", libc::SYS_open_tree),
    ("open_tree_attr", 467),
    ("mount_setattr", libc::SYS_mount_setattr),
    ("sethostname", libc::SYS_sethostname),
    ("setdomainname", libc::SYS_setdomainname),
    ("ptrace", libc::SYS_ptrace),
    ("process_vm_readv", libc::SYS_process_vm_readv),
    ("process_vm_writev", libc::SYS_process_vm_writev),
    ("pidfd_getfd", libc::SYS_pidfd_getfd),
    ("kcmp", libc::SYS_kcmp),
    ("migrate_pages", libc::SYS_migrate_pages),
    ("move_pages", libc::SYS_move_pages),
    ("bpf", libc::SYS_bpf),
    ("perf_event_open", libc::SYS_perf_event_open),
    ("userfaultfd", libc::SYS_userfaultfd),
    ("io_uring_setup", libc::SYS_io_uring_setup),
    ("io_uring_enter", libc::SYS_io_uring_enter),
    ("io_uring_register", libc::SYS_io_uring_register),
    ("fanotify_init", libc::SYS_fanotify_init),
    ("lookup_dcookie", libc::SYS_lookup_dcookie),
    ("keyctl", libc::SYS_keyctl),
    ("add_key", libc::SYS_add_key),
    ("request_key", libc::SYS_request_key),
    ("open_by_handle_at", libc::SYS_open_by_handle_at),
    ("name_to_handle_at", libc::SYS_name_to_handle_at),
    ("kexec_load", libc::SYS_kexec_load),
    #[cfg(target_arch = "x86_64")]
    ("kexec_file_load", libc::SYS_kexec_file_load),
    ("init_module", libc::SYS_init_module),
    ("finit_module", libc::SYS_finit_module),
    ("delete_module", libc::SYS_delete_module),
    ("reboot", libc::SYS_reboot),
    ("swapon", libc::SYS_swapon),
    ("swapoff", libc::SYS_swapoff),
    ("quotactl", libc::SYS_quotactl),
    ("quotactl_fd", 443),
    ("acct", libc::SYS_acct),
    ("clock_settime", libc::SYS_clock_settime),
    ("clock_adjtime", libc::SYS_clock_adjtime),
    ("settimeofday", libc::SYS_settimeofday),
    ("adjtimex", libc::SYS_adjtimex),
    ("syslog", libc::SYS_syslog),
    ("vhangup", libc::SYS_vhangup),
    ("nfsservctl", libc::SYS_nfsservctl),
    #[cfg(target_arch = "x86_64")]
    ("iopl", libc::SYS_iopl),
    #[cfg(target_arch = "x86_64")]
    ("ioperm", libc::SYS_ioperm),
    #[cfg(target_arch = "x86_64")]
    ("modify_ldt", libc::SYS_modify_ldt),
    #[cfg(target_arch = "x86_64")]
    ("uselib", libc::SYS_uselib),
    #[cfg(target_arch = "x86_64")]
    ("sysfs", libc::SYS_sysfs),
    ("clone3", libc::SYS_clone3),
    ("openat2", libc::SYS_openat2),
];

/// Makes the named calls and returns a line for each.
pub(crate) fn attempt(words: &[&str]) -> String {
    match words {
        // `each` makes every call of the table.
        ["each"] => BARE
            .iter()
            .map(|(name, number)| format!("{name} {}", call(*number, [0; 4])))
            .collect::<Vec<String>>()
            .join("\n"),
        ["socket", family, kind, protocol] => {
            call(libc::SYS_socket, numbers([family, kind, protocol, "0"]))
        }
        ["clone", flags] => clone(numbers([flags, "0", "0", "0"])[0]),
        ["control", request] => call(libc::SYS_ioctl, numbers(["0", request, "0", "0"])),
        ["personality", persona] => call(libc::SYS_personality, numbers([persona, "0", "0", "0"])),
        ["mode", path, mode] => with_path(path, |path| {
            let mode = numbers([mode, "0", "0", "0"])[0];
            call(
                libc::SYS_fchmodat,
                [libc::c_long::from(libc::AT_FDCWD), path, mode, 0],
            )
        }),
        ["mode2", path, mode] => with_path(path, |path| {
            let mode = numbers([mode, "0", "0", "0"])[0];
            call(452, [libc::c_long::from(libc::AT_FDCWD), path, mode, 0])
        }),
        ["create", path, mode] => with_path(path, |path| {
            let mode = numbers([mode, "0", "0", "0"])[0];
            let flags = libc::c_long::from(libc::O_CREAT | libc::O_WRONLY);
            call(
                libc::SYS_openat,
                [libc::c_long::from(libc::AT_FDCWD), path, flags, mode],
            )
        }),
        ["node", path, mode] => with_path(path, |path| {
            let mode = numbers([mode, "0", "0", "0"])[0];
            call(
                libc::SYS_mknodat,
                [libc::c_long::from(libc::AT_FDCWD), path, mode, 0],
            )
        }),
        #[cfg(target_arch = "x86_64")]
        ["other-table"] => call(0x4000_0000 | libc::SYS_getpid, [0; 4]),
        #[cfg(target_arch = "x86_64")]
        ["other-instruction-set"] => other_instruction_set(),
        _ => "unknown".to_owned(),
    }
}

/// Reads numbers as C writes them.
fn numbers(texts: [&str; 4]) -> [libc::c_long; 4] {
    texts.map(|text| {
        let parsed = text.strip_prefix("0x").map_or_else(
            || {
                text.strip_prefix("0o").map_or_else(
                    || text.parse(),
                    |octal| libc::c_long::from_str_radix(octal, 8),
                )
            },
            |hex| libc::c_long::from_str_radix(hex, 16),
        );
        parsed.unwrap_or(libc::c_long::MAX)
    })
}

fn with_path(path: &str, then: impl FnOnce(libc::c_long) -> String) -> String {
    let Ok(path) = CString::new(path) else {
        return "unknown".to_owned();
    };
    then(path.as_ptr().expose_provenance().cast_signed() as libc::c_long)
}

#[expect(unsafe_code, reason = "the point is to make the call raw")]
fn call(number: libc::c_long, arguments: [libc::c_long; 4]) -> String {
    let [first, second, third, fourth] = arguments;
    // SAFETY: pointers among the arguments are null or to a terminated string that lives on.
    let result = unsafe { libc::syscall(number, first, second, third, fourth, 0, 0) };
    outcome(result)
}

/// Forks by the raw call; the child ends at once.
#[expect(unsafe_code, reason = "the point is to make the call raw")]
fn clone(flags: libc::c_long) -> String {
    let flags = flags | libc::c_long::from(libc::SIGCHLD);
    // SAFETY: without a stack of its own the child continues here in a copy of the memory.
    let result = unsafe { libc::syscall(libc::SYS_clone, flags, 0, 0, 0, 0) };
    if result == 0 {
        // SAFETY: ends the child without running what belongs to the parent.
        unsafe { libc::_exit(0) }
    }
    outcome(result)
}

/// Asks for its process number as a program of the 32-bit instruction set would.
#[cfg(target_arch = "x86_64")]
#[expect(unsafe_code, reason = "the point is to make the call raw")]
fn other_instruction_set() -> String {
    let mut result: i32 = 20;
    // SAFETY: the call takes no arguments and changes nothing but the register of its result.
    unsafe {
        std::arch::asm!("int 0x80", inout("eax") result);
    }
    outcome(libc::c_long::from(result))
}

fn outcome(result: libc::c_long) -> String {
    if result >= 0 {
        return "done".to_owned();
    }
    match Error::last_os_error().raw_os_error() {
        Some(libc::EPERM) => "refused".to_owned(),
        Some(libc::ENOSYS) => "absent".to_owned(),
        Some(errno) => format!("errno {errno}"),
        None => "unknown".to_owned(),
    }
}
