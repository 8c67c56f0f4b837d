# says: changes what the kernel keeps about the first process
# cases: E48 A50
# levels: native podman
# refused: EROFS EACCES ENOENT EPERM
# control: namespaces
# known-hole: podman root: as the host's root it owns the first process's plain files in /proc; it can make its own container a likelier victim of the kernel and nothing else

for name in ("oom_score_adj", "coredump_filter", "clear_refs", "mem", "comm", "timens_offsets"):
    refuse(name, lambda: os.close(os.open(f"/proc/1/{name}", os.O_WRONLY)))
