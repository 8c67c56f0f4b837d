# says: opens files of the host by the number of their inode
# cases: E43
# levels: native podman
# refused: EPERM ENOSYS
# control: none

handle = ctypes.create_string_buffer(struct.pack("<Ii", 128, 0) + bytes(128))
refuse("name", lambda: call("name_to_handle_at", -100, b"/", handle, ctypes.byref(ctypes.c_int()), 0))
here = os.open(".", os.O_RDONLY)
for kind in (1, 2, 0x81):
    guess = struct.pack("<Ii", 8, kind) + struct.pack("<II", 2, 0)
    refuse(f"open-{kind}", lambda: call("open_by_handle_at", here, guess, os.O_RDONLY))
