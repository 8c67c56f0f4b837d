# says: makes devices and whiteouts of its own
# cases: E20 A35
# levels: native podman
# refused: EPERM
# control: none

import stat
for name, kind, device in [
    ("disk", stat.S_IFBLK, os.makedev(8, 0)), ("virtual-disk", stat.S_IFBLK, os.makedev(254, 0)),
    ("memory", stat.S_IFCHR, os.makedev(1, 1)), ("port", stat.S_IFCHR, os.makedev(1, 4)),
    ("whiteout", stat.S_IFCHR, 0), ("kmsg", stat.S_IFCHR, os.makedev(1, 11)),
]:
    for directory in (".",) if IS_FREE else (".", "/tmp", "/dev/shm", os.environ["HOME"]):
        refuse(f"{name}-in-{directory}", lambda: os.mknod(f"{directory}/{name}", kind | 0o666, device))
