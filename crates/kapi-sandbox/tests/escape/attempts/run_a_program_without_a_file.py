# says: runs a program from memory, where no rule for files applies
# cases: E50
# levels: native podman
# control: mounted

memory = os.memfd_create("program", 0)
os.write(memory, read("/usr/bin/cat", 10_000_000))
child = os.fork()
if child == 0:
    os.execve(memory, ["cat", SECRET, "/proc/self/status"], {})
os.wait()
say("tried", "memory")
