# says: makes a file that looks larger than any disk, by holes
# cases: E15 A37
# levels: native podman
# resources: size=1048576
# refused: EFBIG
# control: unlimited

signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
file = os.open("sparse", os.O_RDWR | os.O_CREAT)
refuse("truncate", lambda: os.ftruncate(file, 1 << 36))
refuse("write-far", lambda: os.pwrite(file, b"x", 1 << 35))
refuse("allocate", lambda: os.posix_fallocate(file, 0, 1 << 21))
