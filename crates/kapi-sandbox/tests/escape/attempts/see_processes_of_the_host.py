# says: sees any process but its own
# cases: E48 E60
# levels: native podman
# refused: ENOENT
# control: none

refuse("host", lambda: os.listdir(f"/proc/{HOST_PID}"))
refuse("thread", lambda: os.listdir(f"/proc/self/task/{HOST_PID}"))
pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
if len(pids) > 12 or max(pids) > 32_000 and HOST_PID in pids:
    say("escaped", "processes", len(pids))
