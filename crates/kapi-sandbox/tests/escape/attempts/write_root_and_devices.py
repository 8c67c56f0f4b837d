# says: makes files where the system begins
# cases: E3
# levels: native podman
# refused: EROFS EACCES ENOENT EPERM
# control: writable /mnt

# What is in a container's /dev is its own; natively it is not to be written either.
for directory in ("/dev " * (os.environ["LEVEL"] == "native") + "/ /dev/pts /home /mnt /proc /proc/sys/kernel /sys /sys/kernel /sys/fs/cgroup").split():
    refuse(directory, lambda: write(f"{directory}/{PLANTED}"))
refuse("mkdir", lambda: os.mkdir(f"/{PLANTED}"))
refuse("rename", lambda: os.rename("/usr", "/moved"))
