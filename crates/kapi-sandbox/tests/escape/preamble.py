# Stands before every attempt in Python: how it says what it tried and what came of it.
import ctypes, errno, fcntl, mmap, os, signal, socket, struct, sys, time

libc = ctypes.CDLL(None, use_errno=True)
libc.syscall.restype = ctypes.c_long
WORKSPACE, PLANTED, SECRET = (os.environ[name] for name in ("WORKSPACE", "PLANTED", "HOST_SECRET"))
HOST_PID, HOST_PORT, HOST_UDP_PORT, HOST_KEY = (
    int(os.environ[name]) for name in ("HOST_PID", "HOST_PORT", "HOST_UDP_PORT", "HOST_KEY"))
NEWTIME, NEWNS, NEWCGROUP, NEWUTS, NEWIPC, NEWUSER, NEWPID, NEWNET = (
    0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
# Where nothing holds it, an attempt keeps to what the suite itself planted: the machine is somebody's.
IS_FREE = os.environ["LEVEL"] == "none"
assert os.uname().machine == "x86_64", "the numbers below are those of one machine; add a table for this one"
CALL = dict(
    ioctl=16, shmget=29, clone=56, ptrace=101, syslog=103, personality=135, uselib=134, ustat=136, sysfs=139,
    vhangup=153, modify_ldt=154, pivot_root=155, adjtimex=159, chroot=161, acct=163, settimeofday=164, mount=165,
    umount2=166, swapon=167, swapoff=168, reboot=169, sethostname=170, setdomainname=171, iopl=172, ioperm=173,
    init_module=175, delete_module=176, quotactl=179, lookup_dcookie=212, clock_settime=227, mq_open=240,
    kexec_load=246, add_key=248, request_key=249, keyctl=250, migrate_pages=256, unshare=272, move_pages=279,
    perf_event_open=298, fanotify_init=300, name_to_handle_at=303, open_by_handle_at=304, clock_adjtime=305,
    setns=308, process_vm_readv=310, process_vm_writev=311, kcmp=312, finit_module=313, kexec_file_load=320,
    bpf=321, userfaultfd=323, io_uring_setup=425, io_uring_register=427, open_tree=428, move_mount=429, fsopen=430,
    fsmount=432, fspick=433, pidfd_open=434, clone3=435, openat2=437, pidfd_getfd=438, process_madvise=440,
    mount_setattr=442, quotactl_fd=443, pidfd_send_signal=424, seccomp=317)


def say(*words):
    print(*words, flush=True)


def refuse(what, attempt):
    """Says `refused` with the kernel's reason, or `escaped` if there was none."""
    try:
        got = attempt()
    except OSError as error:
        say("refused", what, errno.errorcode.get(error.errno, "TIMEOUT" if error.errno is None else error.errno))
    else:
        say("escaped", what, ascii(got)[:160])


def call(name, *arguments):
    """Makes a raw call; numbers that do not fit C's int arrive whole."""
    words = [ctypes.c_long(one) if isinstance(one, int) else one for one in arguments]
    words += [ctypes.c_long(0)] * (6 - len(words))
    result = libc.syscall(ctypes.c_long(CALL[name] if isinstance(name, str) else name), *words)
    if result < 0:
        raise OSError(ctypes.get_errno(), name)
    return result


def in_child(attempt):
    """Does something in a child and returns how that ended, as the kernel tells it."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            code = attempt() or 0
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1]


def write(path, text="planted", flags=os.O_WRONLY | os.O_CREAT | os.O_APPEND):
    file = os.open(path, flags, 0o644)
    try:
        return os.write(file, text.encode())
    finally:
        os.close(file)


def read(path, most=4096):
    with open(path, "rb", buffering=0) as file:
        return file.read(most)
