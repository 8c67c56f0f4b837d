# says: connects to servers on the host's own loopback by each of its names
# cases: E55 A22
# levels: native podman
# refused: ECONNREFUSED ENETUNREACH EHOSTUNREACH EADDRNOTAVAIL EPERM EACCES
# control: open

for number, address in enumerate(["127.0.0.1", "0.0.0.0", "127.1.2.3", "localhost"]):
    refuse(address, lambda: socket.create_connection((address, HOST_PORT), 5))
for address in ("::1", "::ffff:127.0.0.1", "::", "::ffff:0.0.0.0"):
    client = socket.socket(socket.AF_INET6)
    client.settimeout(5)
    refuse(address, lambda: client.connect((address, HOST_PORT)))
