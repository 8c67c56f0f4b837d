# says: fills the machine's memory with temporary files
# cases: E16 A37
# levels: native podman
# resources: memory=67108864
# ends: anyhow
# control: unlimited
# known-hole: podman when "memory limit of all processes together": each temporary place may hold as much as the limit, and no control group counts them together

say("tried", "files")
block, n = bytes(1 << 20), 0
try:
    for directory in ("/tmp", "/dev/shm", "/run", "/var/tmp"):
        with open(f"{directory}/{PLANTED}", "wb", buffering=0) as file:
            for _ in range(60):
                n += file.write(block)
except OSError:
    sys.exit()
time.sleep(2)
say("escaped", "bytes", n)
