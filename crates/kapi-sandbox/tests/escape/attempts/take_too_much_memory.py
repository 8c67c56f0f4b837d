# says: takes more memory than it may
# cases: E65 A37
# levels: native podman
# resources: memory=100663296
# ends: anyhow
# control: unlimited

say("tried", "memory")
try:
    held = [bytearray(b"x" * (1 << 20)) for _ in range(300)]
except MemoryError:
    sys.exit()
time.sleep(3)
say("escaped", "memory", len(held))
