# says: raises its own limits and has secrets dumped
# cases: E65 E73
# levels: native podman
# refused: EPERM EINVAL
# control: host

import resource
for name in ("CORE", "NOFILE", "NPROC", "NICE", "RTPRIO", "MEMLOCK"):
    kind = getattr(resource, f"RLIMIT_{name}")
    soft, hard = resource.getrlimit(kind)
    more = {"NOFILE": 1 << 30, "CORE": 1 << 20}.get(name, hard + 1)
    if name == "CORE" and hard != 0:
        say("escaped", "core files may be written")
    if hard == resource.RLIM_INFINITY:
        say("tried", name, "has none")
        continue

    def attempt():
        try:
            resource.setrlimit(kind, (soft, more))
        except ValueError:
            raise OSError(errno.EPERM, "") from None
    refuse(name, attempt)
