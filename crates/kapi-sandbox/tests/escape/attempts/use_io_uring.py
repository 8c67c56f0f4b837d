# says: has the kernel make calls that the filter never sees
# cases: E42
# levels: native podman
# refused: EPERM ENOSYS
# control: none

refuse("setup", lambda: call("io_uring_setup", 4, ctypes.create_string_buffer(120)))
refuse("enter", lambda: call(426, -1, 0, 0, 0, 0, 0))
refuse("register", lambda: call("io_uring_register", -1, 0, 0, 0))
