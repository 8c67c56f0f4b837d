# says: takes the filter of calls off again
# cases: E38
# levels: native podman
# refused: EPERM EINVAL EACCES EFAULT
# control: none

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, PR_CAPBSET_READ, PR_SET_DUMPABLE = 22, 38, 23, 4


def control(*words):
    if libc.prctl(*words, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "")


refuse("off", lambda: control(PR_SET_SECCOMP, 0))
refuse("may-gain-again", lambda: control(PR_SET_NO_NEW_PRIVS, 0))
allow = (ctypes.c_ubyte * 8)(6, 0, 0, 0, 0, 0, 0xFF, 0x7F)
program = struct.pack("<HHIQ", 1, 0, 0, ctypes.addressof(allow))
# A filter that allows everything may be added, and adds nothing.
libc.syscall(ctypes.c_long(CALL["seccomp"]), 1, 0, program)
refuse("still", lambda: call("keyctl", 0, -3, 0))
