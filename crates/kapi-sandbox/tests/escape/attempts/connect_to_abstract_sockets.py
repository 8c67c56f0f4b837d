# says: connects to local sockets that have no file
# cases: E52
# levels: native podman
# refused: ECONNREFUSED EPERM
# control: none

for kind in (socket.SOCK_STREAM, socket.SOCK_SEQPACKET, socket.SOCK_DGRAM):
    for name in (os.environ["HOST_ABSTRACT"], "/tmp/dbus-planted", "/tmp/.X11-unix/X0"):
        client = socket.socket(socket.AF_UNIX, kind)
        refuse(f"{kind.name}-{name}", lambda: client.connect(b"\0" + name.encode()))
names = read("/proc/net/unix", 100_000).decode()
if os.environ["HOST_ABSTRACT"] in names:
    say("escaped", "list")
