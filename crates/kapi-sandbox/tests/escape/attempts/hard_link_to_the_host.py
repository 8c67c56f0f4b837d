# says: gives files of the system a second name in a place of its own
# cases: E9 A34
# levels: native podman
# refused: EXDEV EPERM ENOENT EROFS
# control: mounted

for file in ["/etc/passwd", "/usr/bin/bash", "/proc/self/exe", "/proc/1/exe", SECRET]:
    refuse(file, lambda: os.link(file, "second"))
    refuse(f"{file}-followed", lambda: os.link(f"/proc/self/root{file}", "second", follow_symlinks=True))
refuse("beside", lambda: os.link(SECRET, f"{os.path.dirname(SECRET)}/{PLANTED}"))
