# says: reads the kernel's log, its addresses and its memory
# cases: E47
# levels: native podman
# refused: EPERM ENOENT EACCES
# control: none
# known-hole: podman root: as the host's root, without capabilities, it reads slabinfo, vmallocinfo and kpageflags, which podman does not mask

refuse("log", lambda: call("syslog", 10, 0, 0))
refuse("log-device", lambda: os.open("/dev/kmsg", os.O_RDONLY))
for name in ("/dev/mem", "/dev/kmem", "/dev/port"):
    refuse(name, lambda: os.open(name, os.O_RDONLY))
for name in ("" if IS_FREE else "kmsg ").split() + "kcore keys timer_list vmallocinfo slabinfo kpageflags sched_debug scsi/scsi".split():
    try:
        if os.read(os.open(f"/proc/{name}", os.O_RDONLY | os.O_NONBLOCK), 128):
            say("escaped", name)
        else:
            say("refused", name, "EACCES")
    except OSError as error:
        say("refused", name, errno.errorcode[error.errno])
