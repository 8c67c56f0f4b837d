# says: fills the machine's memory with temporary files
# cases: E16 A37
# levels: native podman
# resources: memory=67108864
# ends: anyhow
# control: unlimited

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
