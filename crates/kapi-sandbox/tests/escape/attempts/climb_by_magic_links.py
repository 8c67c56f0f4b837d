# says: climbs out by the kernel's own links to other processes' roots, directories and files
# cases: E48 A38
# levels: native podman
# refused: ENOENT EACCES EPERM ENOTDIR ESRCH
# control: none

others = set() if IS_FREE else {"1", str(os.getppid())} | {name for name in os.listdir("/proc") if name.isdigit()}
for pid in sorted(others | {str(HOST_PID)}):
    if pid in (str(os.getpid()), "self"):
        continue
    for name in ("root", "cwd"):
        refuse(f"{pid}/{name}", lambda: read(f"/proc/{pid}/{name}{SECRET}"))
        refuse(f"{pid}/{name}-up", lambda: read(f"/proc/{pid}/{name}/../../../../../..{SECRET}"))
    for number in range(3, 40):
        path = f"/proc/{pid}/fd/{number}"
        if pid != str(os.getppid()) and os.path.lexists(path):
            refuse(f"{pid}/fd/{number}", lambda: read(path))
