# says: makes calls by the numbers of another table, which a filter of numbers would take for others
# cases: E44
# levels: native podman
# refused: ENOSYS EPERM ENODEV
# control: none


def machine_code(code):
    """Runs bytes as code and returns what they leave as result."""
    memory = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    return ctypes.CFUNCTYPE(ctypes.c_int)(address)()


def ended_by(attempt):
    def child():
        try:
            return 77 if attempt() >= 0 else 78
        except OSError as error:
            return error.errno
    status = in_child(child)
    if os.WIFSIGNALED(status):
        assert os.WTERMSIG(status) in (signal.SIGSYS, signal.SIGSEGV), status
        raise OSError(errno.ENOSYS, "")
    code = os.WEXITSTATUS(status)
    if code == 78:
        raise OSError(errno.ENOSYS, "")
    if code != 77:
        raise OSError(code, "")
    return "answered"


# The 32-bit way: process number 20, then a push and a pop of the register that must be kept.
getpid32 = bytes.fromhex("53b814000000cd805bc3")
refuse("instruction-80", lambda: ended_by(lambda: machine_code(getpid32)))
refuse("x32", lambda: ended_by(lambda: call(0x40000000 | 39)))
refuse("x32-mount", lambda: ended_by(lambda: call(0x40000000 | 165)))
