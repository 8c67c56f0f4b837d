# says: becomes another user, drops its nice value, takes another root or name
# cases: E39 E78
# levels: native podman
# refused: EPERM EINVAL EACCES
# control: namespaces

for what, attempt in {
    "chroot": lambda: os.chroot("/tmp"),
    "hostname": lambda: call("sethostname", b"planted", 7),
    "domainname": lambda: call("setdomainname", b"planted", 7),
    "groups": lambda: os.setgroups([0]),
    "user": lambda: os.setuid(12345),
    "group": lambda: os.setgid(12345),
}.items():
    refuse(what, attempt)
if os.getpriority(os.PRIO_PROCESS, 0) <= 0:
    refuse("nice", lambda: os.nice(-5))
refuse("realtime", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(10)))
