# says: carries words out by datagrams and names asked for
# cases: E56 A21
# levels: native podman
# refused: ENETUNREACH EHOSTUNREACH EPERM EACCES EADDRNOTAVAIL ECONNREFUSED
# control: open

client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
for _ in range(3):
    try:
        client.sendto(b"planted", ("127.0.0.1", HOST_UDP_PORT))
    except OSError:
        pass
if len(socket.if_nameindex()) > 1:
    # On a network with more than a loopback these would really leave.
    sys.exit()
for address in ("1.1.1.1", "8.8.8.8", "255.255.255.255", "224.0.0.251"):
    client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    client.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
    refuse(address, lambda: client.sendto(b"planted", (address, 5353)))
try:
    say("escaped", "name", socket.getaddrinfo("example.com", 80))
except socket.gaierror:
    say("tried", "name")
