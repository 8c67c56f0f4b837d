# says: reaches the host by pipes and sockets that it makes in the workspace
# cases: E18 E19 A35
# levels: native podman
# refused: ENXIO ENOENT ECONNREFUSED
# control: none

os.mkfifo("pipe")
refuse("pipe", lambda: os.open("pipe", os.O_WRONLY | os.O_NONBLOCK))
server = socket.socket(socket.AF_UNIX)
server.bind("socket")
refuse("socket", lambda: socket.socket(socket.AF_UNIX).connect("socket"))
for path in (SECRET, f"{os.path.dirname(os.path.dirname(SECRET))}/lower/host.sock"):
    refuse("host", lambda: os.stat(path) if path == SECRET else socket.socket(socket.AF_UNIX).connect(path))
