# says: connects to the internet, the private network and the machine's metadata, past any proxy
# cases: E55 A20
# levels: native podman
# refused: ENETUNREACH EHOSTUNREACH EADDRNOTAVAIL EPERM EACCES ECONNREFUSED
# control: open

# What the host has beside its loopback would be named here; then nothing need be sent.
names = {name for _, name in socket.if_nameindex()}
if names != {"lo"}:
    say("escaped", "interfaces", names)
    sys.exit()
addresses = ["1.1.1.1", "8.8.8.8", "169.254.169.254", "169.254.1.1", "10.0.2.2", "172.17.0.1", "192.0.2.1", "100.100.100.200"]
for address in addresses + ["2606:4700:4700::1111", "fd00:ec2::254"]:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    for kind, port in ((socket.SOCK_STREAM, 443), (socket.SOCK_STREAM, 53), (socket.SOCK_DGRAM, 53)):
        client = socket.socket(family, kind | socket.SOCK_NONBLOCK)
        refuse(f"{address}/{port}/{kind.name}", lambda: client.connect((address, port)))
