# says: erases its own output, which is evidence
# cases: E68 A16
# levels: native podman
# refused: EINVAL ESPIPE EACCES EPERM ENXIO ENOENT EBADF
# control: to-file

say("tried", "before")
for number in (1, 2):
    refuse(f"truncate-{number}", lambda: os.ftruncate(number, 0))
    refuse(f"seek-{number}", lambda: os.lseek(number, 0, 0))
    refuse(f"map-{number}", lambda: mmap.mmap(number, 1))

    def again():
        file = os.open(f"/proc/self/fd/{number}", os.O_RDWR)
        os.ftruncate(file, 0)
    refuse(f"open-again-{number}", again)
