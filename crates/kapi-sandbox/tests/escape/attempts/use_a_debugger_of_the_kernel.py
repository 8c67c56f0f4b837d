# says: reads tracing and debugging file systems
# cases: E47 E42
# levels: native podman
# refused: ENOENT EACCES EPERM EROFS ENOTDIR
# control: namespaces

for directory in ("/sys/kernel/debug", "/sys/kernel/tracing", "/sys/fs/bpf", "/sys/fs/pstore", "/sys/firmware", "/sys/kernel/security"):
    def attempt():
        if not os.listdir(directory):
            raise OSError(errno.EACCES, "")
        return directory
    refuse(directory, attempt)
for kind in (b"debugfs", b"tracefs", b"securityfs", b"sysfs", b"bpf", b"mqueue", b"binfmt_misc", b"configfs"):
    refuse(kind.decode(), lambda: call("mount", b"none", b"/tmp", kind, 0, 0))
