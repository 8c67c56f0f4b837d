# says: makes routes, interfaces and packets of its own
# cases: E55 E46
# levels: native podman
# refused: EPERM ENOENT EACCES EROFS ENODEV
# control: namespaces

SIOCSIFFLAGS, SIOCSIFADDR = 0x8914, 0x8916
client = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
down = struct.pack("<16sH22x", b"lo", 0)
refuse("loopback-down", lambda: fcntl.ioctl(client, SIOCSIFFLAGS, down))
address = struct.pack("<16sH2s4s16x", b"lo", socket.AF_INET, b"", b"\x0a\x01\x02\x03")
refuse("address", lambda: fcntl.ioctl(client, SIOCSIFADDR, address))
refuse("tunnel", lambda: os.open("/dev/net/tun", os.O_RDWR))
refuse("settings", lambda: write("/proc/sys/net/ipv4/ip_forward", "1", os.O_WRONLY))
refuse("mark", lambda: client.setsockopt(socket.SOL_SOCKET, 36, 1))
refuse("transparent", lambda: client.setsockopt(socket.SOL_IP, 19, 1))
