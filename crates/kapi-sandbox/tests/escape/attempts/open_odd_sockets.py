# says: opens sockets of families that no network namespace or rule covers
# cases: E54
# levels: native podman
# refused: EPERM EACCES EAFNOSUPPORT
# control: none

for name, family, kind, protocol in [
    ("virtual-machine", 40, 1, 0), ("crypto", 38, 5, 0), ("packet", 17, 3, 0x0300), ("raw", 2, 3, 1), ("raw-6", 10, 3, 58),
    ("netlink-audit", 16, 3, 9), ("netlink-uevent", 16, 3, 15), ("netlink-netfilter", 16, 3, 12), ("netlink-selinux", 16, 3, 7),
    ("netlink-connector", 16, 3, 11), ("bluetooth", 31, 5, 0), ("can", 29, 3, 1), ("xdp", 44, 3, 0), ("x25", 9, 5, 0),
    ("tipc", 30, 2, 0), ("rds", 21, 5, 0), ("keys", 15, 3, 2), ("vhigh", (1 << 32) | 40, 1, 0), ("smc", 43, 1, 0),
]:
    refuse(name, lambda: os.close(call(41, family, kind, protocol)))
    refuse(f"{name}-pair", lambda: call(53, family, kind, protocol, ctypes.create_string_buffer(8)))
