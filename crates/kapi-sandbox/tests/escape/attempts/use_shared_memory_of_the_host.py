# says: finds shared memory and message queues that programs of the host made
# cases: E59
# levels: native podman
# refused: ENOENT EPERM EACCES ENOSYS
# control: none

refuse("memory", lambda: call("shmget", HOST_KEY, 64, 0))
refuse("queue", lambda: call("mq_open", os.environ["HOST_QUEUE"][1:].encode(), os.O_RDONLY, 0, 0))
refuse("files", lambda: os.open(f"/dev/shm/{PLANTED}", os.O_RDWR))
for name in ("shm", "msg", "sem"):
    if len(read(f"/proc/sysvipc/{name}").splitlines()) > 1:
        say("escaped", name)
