# says: climbs out by descriptors of directories that lie above a new root
# cases: E39 E37
# levels: native podman
# refused: ENOENT EPERM
# control: mounted

top = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
for depth in (1, 5, 50):
    refuse(f"openat-{depth}", lambda: os.open("../" * depth + SECRET[1:], os.O_RDONLY, dir_fd=top))
for _ in range(50):
    os.fchdir(top)
    os.chdir("..")
refuse("fchdir", lambda: read(SECRET[1:]))


def twice():
    """The classic: a new root below, while a descriptor still leads above it."""
    os.mkdir(f"{WORKSPACE}/below")
    os.chroot(f"{WORKSPACE}/below")
    os.fchdir(top)
    os.chdir("../" * 40)
    os.chroot(".")
    return read(SECRET)


refuse("chroot-twice", twice)
