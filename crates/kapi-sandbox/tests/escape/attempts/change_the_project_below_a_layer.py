# says: reaches the project itself below its copy-on-write layer
# cases: E10 E8 E24
# levels: native podman
# workspace: layer
# control: direct

os.chdir(WORKSPACE)
os.link("readme", "second")
with open("second", "a") as file:
    file.write("changed\n")
os.chmod("src/main", 0o600)
os.utime("src/main", (1, 1))
os.truncate("src/main", 0)
os.rename("src/main", "moved")
with open("readme", "r+b", buffering=0) as file:
    memory = mmap.mmap(file.fileno(), 8)
    memory[:7] = b"changed"
    memory.flush()
os.unlink("readme")
say("tried", "everything")
