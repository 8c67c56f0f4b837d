# says: sets the clock back, on which leases and schedules rest
# cases: E45 E74
# levels: native podman
# refused: EPERM ENOSYS EROFS EACCES
# control: none

refuse("set", lambda: call("clock_settime", 0, 0))
refuse("set-boot", lambda: call("clock_settime", 99, struct.pack("<qq", 0, 0)))
refuse("adjust", lambda: call("clock_adjtime", 99, 0))
refuse("old-set", lambda: call("settimeofday", 1, 0))
refuse("old-adjust", lambda: call("adjtimex", 1))
for zone in ("/etc/localtime", "/etc/timezone"):
    if not IS_FREE:
        refuse(zone, lambda: os.symlink("zone", f"{zone}.{PLANTED}"))
