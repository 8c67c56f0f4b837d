# says: tells the host side what only our own program tells it, by any descriptor it finds
# cases: A13 A17 E75
# levels: native podman
# control: passed

for number in range(3, 64):
    for text in (b'"Leader"', b'{"Ended":{"Exited":0}}', b'{"Failed":{"call":"x","target":"y","errno":1}}', b"g"):
        try:
            os.write(number, text)
            say("escaped", "write", number)
        except OSError:
            pass
        try:
            if os.read(number, 1):
                say("escaped", "read", number)
        except OSError:
            pass
print('{"Ended":{"Exited":0}}\nKAPSIS_MOUNT_FAILURE[probe]: planted', flush=True)
say("tried", "words")
