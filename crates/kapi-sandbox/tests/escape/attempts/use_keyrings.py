# says: keeps keys in the kernel and looks for those of others
# cases: E41 A36
# levels: native podman
# refused: EPERM ENOSYS
# control: none

refuse("add", lambda: call("add_key", b"user", b"planted", b"x", 1, -2))
refuse("session", lambda: call("keyctl", 0, -3, 0))
refuse("user-session", lambda: call("keyctl", 0, -5, 1))
refuse("request", lambda: call("request_key", b"user", b"planted", 0, -2))
refuse("describe", lambda: call("keyctl", 6, -4, 0, 0))
refuse("join", lambda: call("keyctl", 1, 0))
