# says: reads and writes other processes' memory and takes their descriptors
# cases: E40
# levels: native podman
# refused: EPERM ESRCH ENOSYS
# control: none

buffer = ctypes.create_string_buffer(64)
local = struct.pack("<QQ", ctypes.addressof(buffer), 64)
for pid in (HOST_PID,) if IS_FREE else (1, os.getppid(), HOST_PID):
    with open("/proc/self/maps") as maps:
        address = int(maps.readline().split("-")[0], 16)
    remote = struct.pack("<QQ", address, 64)
    refuse(f"read-{pid}", lambda: call("process_vm_readv", pid, local, 1, remote, 1, 0))
    refuse(f"write-{pid}", lambda: call("process_vm_writev", pid, local, 1, remote, 1, 0))
    refuse(f"descriptor-{pid}", lambda: call("pidfd_getfd", os.pidfd_open(pid), 0, 0))
    refuse(f"compare-{pid}", lambda: call("kcmp", os.getpid(), pid, 2, 0, 0))
