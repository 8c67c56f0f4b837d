# says: makes so many empty files that the host has no more room for names
# cases: E14 A37
# levels: native podman
# resources: disk=1048576
# ends: anyhow
# exceeded: disk 1 MiB
# control: unlimited

say("tried", "files")
for number in range(15_000):
    os.close(os.open(f"{number:0200}", os.O_CREAT | os.O_WRONLY))
# Who looks only now and then has this long to do so.
time.sleep(int(os.environ["PATIENCE"]))
say("escaped", "files")
