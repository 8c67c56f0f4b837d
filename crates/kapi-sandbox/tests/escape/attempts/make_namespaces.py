# says: makes namespaces, a user's first of all, in which it would have every capability
# cases: E38 A36
# levels: native podman
# refused: EPERM ENOSYS
# control: none

kinds = dict(user=NEWUSER, mount=NEWNS, process=NEWPID, network=NEWNET, ipc=NEWIPC, uts=NEWUTS, cgroup=NEWCGROUP, time=NEWTIME)
kinds.update({"user-and-all": NEWUSER | NEWNS | NEWPID | NEWNET | NEWIPC | NEWUTS})


def answered(attempt):
    """Makes the call in a child, so that what it brings does not stay."""
    def child():
        try:
            attempt()
        except OSError as error:
            return error.errno
        return 0
    code = os.waitstatus_to_exitcode(in_child(child))
    if code:
        raise OSError(code, "")
    return "made"


for name, flag in kinds.items():
    refuse(f"unshare-{name}", lambda: answered(lambda: call("unshare", flag)))
    if flag != NEWTIME:
        refuse(f"clone-{name}", lambda: answered(lambda: os._exit(0) if call("clone", flag | 17) == 0 else os.wait()))
arguments = struct.pack("<8Q", NEWUSER, 0, 0, 0, 17, 0, 0, 0)
refuse("clone3", lambda: os._exit(0) if call("clone3", arguments, 64) == 0 else "made")
