# says: looks for the person's secrets in the environment and memory of every process it sees
# cases: E48 E70
# levels: native podman
# refused: EACCES EPERM ENOENT ESRCH EIO
# control: none

print(dict(os.environ))
for pid in ([] if IS_FREE else [name for name in os.listdir("/proc") if name.isdigit()]) + [str(HOST_PID)]:
    for name in ("environ", "cmdline"):
        try:
            print(pid, name, read(f"/proc/{pid}/{name}", 100_000))
        except OSError as error:
            say("refused", f"{pid}/{name}", errno.errorcode[error.errno])
for name in () if IS_FREE else ("environ", "mem", "maps", "auxv", "stack", "syscall", "map_files", "io", "personality", "exe"):
    def attempt():
        if name == "exe":
            return os.open("/proc/1/exe", os.O_WRONLY)
        return os.listdir("/proc/1/map_files") if name == "map_files" else read(f"/proc/1/{name}")
    refuse(f"1/{name}", attempt)
