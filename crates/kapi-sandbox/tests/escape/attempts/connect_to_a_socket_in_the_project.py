# says: connects to a local socket that a program of the host left in the project
# cases: E53
# levels: native podman
# workspace: layer
# refused: ECONNREFUSED ENOENT EPERM EACCES ENXIO
# control: direct

client = socket.socket(socket.AF_UNIX)
client.settimeout(5)
refuse("socket", lambda: client.connect(f"{WORKSPACE}/host.sock"))
refuse("again", lambda: socket.socket(socket.AF_UNIX).connect("../host.sock"))
os.link("../host.sock", "second.sock")
refuse("second-name", lambda: socket.socket(socket.AF_UNIX).connect("second.sock"))
