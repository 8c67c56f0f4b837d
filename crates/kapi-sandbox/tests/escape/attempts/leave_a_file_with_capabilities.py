# says: leaves a program that brings capabilities of its own
# cases: E22
# levels: native podman
# refused: EPERM EOPNOTSUPP
# control: namespaces

open("program", "w").close()
value = struct.pack("<IIIII", 0x02000001, 0xFFFFFFFF, 0, 0xFFFFFFFF, 0)
refuse("capability", lambda: os.setxattr("program", "security.capability", value))
refuse("trusted", lambda: os.setxattr("program", "trusted.overlay.opaque", b"y"))
