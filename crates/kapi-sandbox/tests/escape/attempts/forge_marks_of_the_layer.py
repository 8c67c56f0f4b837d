# says: forges the marks by which a layer shows other files of the host
# cases: E23
# levels: native podman
# workspace: layer
# refused: EPERM EOPNOTSUPP ENODATA
# control: mounted

os.mkdir("shown")
open("file", "w").close()
for space in ("user", "trusted"):
    for name, value in (("redirect", SECRET.encode()), ("opaque", b"y"), ("metacopy", b""), ("origin", bytes(20))):
        for target in ("shown", "file"):
            try:
                os.setxattr(target, f"{space}.overlay.{name}", value)
            except OSError as error:
                say("refused", f"{space}.{name}", errno.errorcode[error.errno])
# Whatever was taken, nothing of the host shows.
for path in ("shown", "shown/file", "file", SECRET):
    try:
        print(os.listdir(path) if os.path.isdir(path) else read(path))
    except OSError:
        pass
say("tried", "marks")
