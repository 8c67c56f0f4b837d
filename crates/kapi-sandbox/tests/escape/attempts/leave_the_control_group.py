# says: leaves its control group or has the host start a program when one is empty
# cases: A37
# levels: native podman
# refused: EROFS EACCES ENOENT EPERM
# control: namespaces

for directory in ("/sys/fs/cgroup", "/sys/fs/cgroup/memory", "/sys/fs/cgroup/pids", "/sys/fs/cgroup/unified", "/sys/fs/cgroup/freezer"):
    refuse(f"{directory}-group", lambda: os.rmdir(f"{directory}/{PLANTED}") if os.mkdir(f"{directory}/{PLANTED}") is None else None)
    refuse(f"{directory}-out", lambda: write(f"{directory}/cgroup.procs", "0", os.O_WRONLY))
    refuse(f"{directory}-tell", lambda: os.close(os.open(f"{directory}/notify_on_release", os.O_WRONLY)))
os.mkdir("groups")
refuse("mount-1", lambda: call("mount", b"none", b"groups", b"cgroup", 0, b"memory"))
refuse("mount-2", lambda: call("mount", b"none", b"groups", b"cgroup2", 0, 0))
