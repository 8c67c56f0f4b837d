# says: attaches to the first process, its parent and the host's
# cases: E40 A36 A50
# levels: native podman
# refused: EPERM ESRCH
# control: none

for pid in (HOST_PID,) if IS_FREE else (1, os.getppid(), HOST_PID):
    for name, request in (("attach", 16), ("seize", 0x4206)):
        def attempt():
            call("ptrace", request, pid, 0, 0)
            try:
                os.waitpid(pid, 0x40000000 | os.WNOHANG)
            finally:
                call("ptrace", 17, pid, 0, 0)
        refuse(f"{name}-{pid}", attempt)
refuse("self", lambda: call("ptrace", 0, 0, 0, 0))
