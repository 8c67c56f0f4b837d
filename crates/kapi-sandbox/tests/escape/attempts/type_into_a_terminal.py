# says: types commands into the person's terminal
# cases: E49
# levels: native podman
# refused: EPERM ENXIO ENOENT EACCES ENOTTY
# control: none

import pty, termios
refuse("own-terminal", lambda: os.open("/dev/tty", os.O_RDWR))
for number in (0, 1, 2):
    refuse(f"type-{number}", lambda: fcntl.ioctl(number, termios.TIOCSTI, b"x"))
    refuse(f"type-high-bits-{number}", lambda: call("ioctl", number, 0x100000000 | termios.TIOCSTI, b"x"))
inner = os.open(os.ttyname(pty.openpty()[1]), os.O_RDWR | os.O_NOCTTY)
refuse("type", lambda: fcntl.ioctl(inner, termios.TIOCSTI, b"x"))
refuse("paste", lambda: fcntl.ioctl(inner, 0x541C, b"\x02"))
for number in range(4):
    name = f"/dev/pts/{number}"
    if os.stat(name).st_rdev != os.fstat(inner).st_rdev if os.path.exists(name) else False:
        refuse(name, lambda: os.open(name, os.O_WRONLY))
