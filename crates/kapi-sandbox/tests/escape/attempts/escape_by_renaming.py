# says: moves directories from under its feet to be above the new root
# cases: E7 A34 E8
# levels: native podman
# refused: ENOENT EXDEV EBUSY EPERM EROFS EINVAL EACCES
# control: mounted

os.makedirs("deep/er")
os.chdir("deep/er")
refuse("workspace", lambda: os.rename(WORKSPACE, "/tmp/workspace"))
refuse("home", lambda: os.rename(os.environ["HOME"], "/tmp/home"))
os.rename(f"{WORKSPACE}/escape_by_renaming.py.d/deep", f"{WORKSPACE}/deep")
for depth in (3, 9, 60):
    refuse(f"up-{depth}", lambda: read("../" * depth + SECRET[1:]))
refuse("exchange", lambda: call(316, -100, b".", -100, b"/tmp", 2))
refuse("secret", lambda: os.rename(SECRET, "taken"))
