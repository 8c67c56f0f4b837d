# says: talks to the host's container engine, message bus or agents by their sockets
# cases: A39 E53
# levels: native podman
# refused: ENOENT EACCES ECONNREFUSED
# control: mounted

run = f"/run/user/{os.getuid()}"
paths = ["/run/docker.sock", "/var/run/docker.sock", "/run/podman/podman.sock", f"{run}/podman/podman.sock", f"{run}/bus",
         "/run/dbus/system_bus_socket", "/run/containerd/containerd.sock", "/run/systemd/private", "/tmp/.X11-unix/X0",
         f"{run}/gnupg/S.gpg-agent", "/run/.kapi", "/run/user"]
for path in paths:
    refuse(path, lambda: socket.socket(socket.AF_UNIX).connect(path))
for name in ("SSH_AUTH_SOCK", "DBUS_SESSION_BUS_ADDRESS", "DOCKER_HOST", "XDG_RUNTIME_DIR", "DISPLAY", "WAYLAND_DISPLAY"):
    if name in os.environ:
        say("escaped", name)
refuse("agent-directory", lambda: os.listdir(os.path.dirname(SECRET) + "/.ssh"))
