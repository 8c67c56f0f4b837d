# says: looks for calls that a filter of names forgot, by their newest numbers
# cases: E42 E45
# levels: native podman
# control: none

# Calls made after this suite was written must not be answered before somebody has looked at them.
allowed = set()
for number in range(470, 520):
    try:
        libc.syscall(ctypes.c_long(number), *[ctypes.c_long(-1)] * 6)
        code = ctypes.get_errno()
    except OSError as error:
        code = error.errno
    if code not in (errno.ENOSYS, errno.EPERM):
        allowed.add((number, errno.errorcode.get(code)))
if allowed:
    say("escaped", sorted(allowed))
# Without the filter a number that is no call gives the same answer; the clock's tells the difference.
refuse_filter = None
try:
    call("clock_adjtime", 99, 0)
except OSError as error:
    if error.errno != errno.EPERM:
        say("escaped", "filter", errno.errorcode[error.errno])
say("tried", "numbers")
