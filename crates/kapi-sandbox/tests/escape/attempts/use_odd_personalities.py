# says: asks for memory laid out as old programs had it, and edits its segment table
# cases: E45 E51
# levels: native podman
# refused: EPERM ENOSYS EINVAL
# control: none

for persona in (0x0400000, 0x0100000, 0x0200000, 0x4000000):
    refuse(f"personality-{persona:x}", lambda: call("personality", persona))
refuse("segments", lambda: call("modify_ldt", 1, ctypes.create_string_buffer(struct.pack("<IIII", 0, 0, 0xFFFFF, 0x51)), 16))
refuse("library", lambda: call("uselib", b"/usr/bin/true"))
refuse("file-systems", lambda: call("sysfs", 3))
