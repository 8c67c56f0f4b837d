# says: leaves a set-user-id program in the workspace
# cases: E21
# levels: native podman
# refused: EPERM ENOSYS
# control: none

def make(name):
    with open(name, "w") as file:
        file.write("#!/bin/sh\n")
    return name


refuse("chmod", lambda: os.chmod(make("one"), 0o4755))
refuse("fchmod", lambda: os.fchmod(os.open(make("two"), os.O_RDWR), 0o4755))
refuse("open", lambda: os.open("three", os.O_CREAT | os.O_WRONLY, 0o4755))
refuse("creat", lambda: call(85, b"four", 0o4755))
refuse("mknod", lambda: os.mknod("five", 0o104755))
refuse("fchmodat2", lambda: call(452, -100, make("six").encode(), 0o4755, 0))
refuse("chmod-high-bits", lambda: call(90, make("seven").encode(), 0x7F00000000 | 0o4755))
refuse("home", lambda: os.chmod(make(os.environ["HOME"] + "/eight"), 0o6755))
