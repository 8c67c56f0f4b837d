# says: mounts, remounts and uncovers file systems with the old calls
# cases: E37 A36
# levels: native podman
# refused: EPERM
# control: namespaces

REMOUNT, BIND, MOVE, PRIVATE, REC = 32, 4096, 8192, 1 << 18, 16384
os.mkdir("point")
for what, words in {
    "tmpfs": (b"none", b"point", b"tmpfs", 0, 0),
    "proc": (b"none", b"point", b"proc", 0, 0),
    "bind": (b"/", b"point", b"", BIND | REC, 0),
    "overlay": (b"none", b"point", b"overlay", 0, b"lowerdir=/usr"),
    "writable": (b"", b"/usr", b"", REMOUNT | BIND, 0),
    "writable-root": (b"", b"/", b"", REMOUNT | BIND, 0),
    "private": (b"", b"/", b"", PRIVATE | REC, 0),
    "move": (b"/tmp", b"point", b"", MOVE, 0),
}.items():
    refuse(what, lambda: call("mount", *words))
for path in ("/proc", "/proc/keys", "/workspace", "/etc/passwd", "/", "/dev/null"):
    refuse(f"umount-{path}", lambda: call("umount2", path.encode(), 2))
refuse("pivot", lambda: call("pivot_root", b".", b"."))
