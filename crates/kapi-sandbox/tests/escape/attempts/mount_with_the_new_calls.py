# says: mounts with the calls that came later, which older filters do not know
# cases: E37 A36
# levels: native podman
# refused: EPERM ENOSYS
# control: none

refuse("fsopen", lambda: call("fsopen", b"tmpfs", 0))
refuse("fspick", lambda: call("fspick", -100, b"/", 0))
refuse("open_tree", lambda: call("open_tree", -100, b"/", 0))
refuse("open_tree-clone", lambda: call("open_tree", -100, b"/", 1))
refuse("move_mount", lambda: call("move_mount", -1, b"", -100, b"/tmp", 4))
refuse("mount_setattr", lambda: call("mount_setattr", -100, b"/", 0, ctypes.create_string_buffer(32), 32))
refuse("fsmount", lambda: call("fsmount", -1, 0, 0))
refuse("open_tree_attr", lambda: call(467, -100, b"/", 0, 0, 0))
