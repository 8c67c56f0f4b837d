# says: writes through symbolic links that lead out of the project
# cases: E5 A30
# levels: native podman
# refused: ENOENT EROFS EACCES
# control: mounted

for number, target in enumerate([SECRET, f"/proc/self/root{SECRET}", "../" * 30 + SECRET[1:]]):
    os.symlink(target, f"link{number}")
    refuse(f"write-{number}", lambda: write(f"link{number}", flags=os.O_WRONLY))
    refuse(f"read-{number}", lambda: read(f"link{number}"))
os.symlink("/etc/passwd", "users")
refuse("system", lambda: write("users"))
