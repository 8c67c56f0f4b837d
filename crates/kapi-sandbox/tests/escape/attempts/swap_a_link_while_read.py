# says: swaps a directory for a link again and again while it reads and writes through it
# cases: E7 A34
# levels: native podman
# control: mounted

os.mkdir("real")
open("real/file", "w").close()
os.symlink(os.path.dirname(SECRET), "link")
end = time.monotonic() + 0.3
swapper = os.fork()
if swapper == 0:
    while time.monotonic() < end:
        call(316, -100, b"real", -100, b"link", 2)
    os._exit(0)
n = 0
while time.monotonic() < end:
    for name in ("real/file", "link/file"):
        try:
            text = read(name)
            if text:
                print(text)
                end = 0
        except OSError:
            pass
        n += 1
os.kill(swapper, 9)
say("tried", n)
