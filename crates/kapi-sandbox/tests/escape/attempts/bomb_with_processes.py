# says: makes more processes than it may
# cases: E61 A37
# levels: native podman
# resources: processes=60
# ends: anyhow
# control: unlimited

made = []
try:
    while len(made) < 150:
        child = os.fork()
        if child == 0:
            time.sleep(4)
            os._exit(0)
        made.append(child)
    say("escaped", "processes", len(made))
except OSError as error:
    say("tried", len(made), "processes")
    # They stay for a while, so that whoever counts has seen them.
    time.sleep(3)
