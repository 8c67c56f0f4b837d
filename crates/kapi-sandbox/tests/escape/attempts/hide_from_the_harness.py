# says: leaves its process namespace's order: new sessions, names, and a reaper of its own
# cases: E62 A17
# levels: native podman
# alone: it becomes the reaper of others
# control: host

PR_SET_CHILD_SUBREAPER, PR_SET_NAME, PR_SET_PDEATHSIG = 36, 15, 1
libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
libc.prctl(PR_SET_NAME, b"kapi", 0, 0, 0)
if os.fork() == 0:
    os.setsid()
    libc.prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)
    for _ in range(20):
        if os.fork():
            os._exit(0)
        os.setsid()
    null = os.open("/dev/null", os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(null, number)
    os.execv("/usr/bin/sleep", ["sleep", os.environ["MARK"]])
os.wait()
while os.system("pgrep -f '^[s]leep " + os.environ["MARK"] + "' >/dev/null"):
    time.sleep(0.01)
say("tried", "to hide")
