# says: restarts the machine, changes its swap, quotas, accounting and ports
# cases: E45
# levels: native podman
# refused: EPERM ENOSYS
# control: none

refuse("restart", lambda: call("reboot", 0, 0, 0, 0))
refuse("swap", lambda: call("swapon", b"/nowhere/planted", 0))
refuse("no-swap", lambda: call("swapoff", b"/nowhere/planted"))
refuse("quota", lambda: call("quotactl", 0x800001 << 8, 0, 0, 0))
refuse("quota-file", lambda: call("quotactl_fd", -1, 0, 0, 0))
refuse("accounting", lambda: call("acct", b"/nowhere/planted"))
refuse("hang-up", lambda: call("lookup_dcookie", 0, 0, 0))
refuse("ports", lambda: call("ioperm", 0x80, 1, 1))
refuse("all-ports", lambda: call("iopl", 3))
