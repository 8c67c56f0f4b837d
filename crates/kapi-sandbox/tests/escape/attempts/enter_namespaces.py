# says: enters namespaces of other processes
# cases: E38 A36
# levels: native podman
# refused: EPERM EACCES ENOENT ESRCH
# control: none

for pid in (HOST_PID,) if IS_FREE else (1, os.getppid(), HOST_PID):
    for name in ("user", "mnt", "pid", "net", "ipc", "uts", "cgroup"):
        refuse(f"{pid}-{name}", lambda: call("setns", os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY), 0))
refuse("by-process", lambda: call("setns", os.pidfd_open(os.getppid()), NEWNS))
