# says: replaces the program of ours that started it, which runs on the host too
# cases: E75 A38
# levels: native podman
# refused: ENOENT EROFS EACCES EPERM ETXTBSY EBUSY EXDEV
# control: none

own = f"{os.path.dirname(os.path.dirname(SECRET))}/helper"
inside = ("/run/.kapi/kapi", "/run/.kapi/loader", "/proc/1/exe", "/proc/1/root/run/.kapi/kapi")
for path in (own,) if IS_FREE else (*inside, own):
    refuse(path, lambda: os.close(os.open(path, os.O_WRONLY)))
    refuse(f"mode-{path}", lambda: os.chmod(path, 0o755))
    refuse(f"second-{path}", lambda: os.link(path, f"{path}.{PLANTED}"))
if not IS_FREE:
    refuse("gone", lambda: os.unlink("/run/.kapi/kapi"))
    refuse("cover", lambda: call("mount", b"/tmp", b"/run/.kapi", b"", 4096, 0))
