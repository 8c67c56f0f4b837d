# says: finds descriptors of the host that were left open
# cases: E67
# levels: native podman
# control: passed

own = os.open("/proc/self/fd", os.O_RDONLY | os.O_DIRECTORY)
for number in sorted(int(name) for name in os.listdir(own)):
    try:
        what = os.readlink(f"/proc/self/fd/{number}")
    except OSError:
        continue
    if number > 2 and number != own and not what.startswith("/attempts/") and "/attempts/" not in what:
        say("escaped", number, what)
        os.lseek(number, 0, 0)
        print(os.read(number, 100))
say("tried", "descriptors")
