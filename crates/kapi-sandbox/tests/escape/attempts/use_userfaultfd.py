# says: handles page faults itself, which makes races in the kernel easy to win
# cases: E42 A36
# levels: native podman
# refused: EPERM ENOSYS ENOENT
# control: none

refuse("kernel", lambda: call("userfaultfd", 0))
refuse("user-only", lambda: call("userfaultfd", 1))
refuse("device", lambda: os.open("/dev/userfaultfd", os.O_RDWR))
