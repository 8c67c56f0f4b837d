# says: learns the host's paths from arguments, mounts and variables of the processes around it
# cases: E48 A19
# levels: native podman
# control: none

place = os.path.dirname(os.path.dirname(SECRET))
# The process of the host that the suite planted says its own path nowhere; every other does.
for pid in [name for name in os.listdir("/proc") if name.isdigit() and name != str(os.getpid())]:
    try:
        text = read(f"/proc/{pid}/cmdline", 100_000)
        if place.encode() in text.replace(b"/attempts/", b"") and str(os.getppid()) != pid:
            say("escaped", pid, text[:200])
    except OSError:
        pass
say("tried", "arguments")
