# says: confuses the first process by orphans, stops and odd ends
# cases: E72 A50
# levels: native podman
# alone: it leaves many orphans
# control: host

for _ in range(200):
    if os.fork() == 0:
        if os.fork() == 0:
            os._exit(7)
        os._exit(0)
for number in range(1, 65):
    try:
        # Only where the first process is ours.
        if WORKSPACE == "/workspace":
            os.kill(1, number)
    except OSError:
        pass
child = os.fork()
if child == 0:
    os.setsid()
    if os.fork() == 0:
        null = os.open("/dev/null", os.O_RDWR)
        for number in (0, 1, 2):
            os.dup2(null, number)
        os.execv("/usr/bin/sleep", ["sleep", os.environ["MARK"]])
    os._exit(0)
os.waitpid(child, 0)
while os.system("pgrep -f '^[s]leep " + os.environ["MARK"] + "' >/dev/null"):
    time.sleep(0.01)
say("tried", "first process")
