# says: loads programs into the kernel
# cases: E42 A36
# levels: native podman
# refused: EPERM ENOSYS
# control: none

refuse("map", lambda: call("bpf", 0, struct.pack("<IIII", 2, 4, 4, 1) + bytes(64), 80))
refuse("program", lambda: call("bpf", 5, bytes(80), 80))
refuse("unknown", lambda: call("bpf", 999, bytes(80), 80))
refuse("negative", lambda: call("bpf", -1, 0, 0))
