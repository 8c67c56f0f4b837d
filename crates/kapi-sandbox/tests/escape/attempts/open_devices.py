# says: opens devices that reach the machine
# cases: E46
# levels: native podman
# refused: ENOENT EACCES EPERM ENXIO
# control: none

import stat
for name in "fuse kvm net/tun loop-control".split() if IS_FREE else "fuse kvm net/tun vhost-net vhost-vsock vsock mapper/control loop-control loop0 vda sda nvme0n1 uinput input/event0 dri/card0 snd/timer rtc0 hpet watchdog btrfs-control cuse vfio/vfio ppp cpu/0/msr snapshot autofs userfaultfd".split():
    refuse(name, lambda: os.open(f"/dev/{name}", os.O_RDONLY | os.O_NONBLOCK))
for directory, _, names in os.walk("/dev"):
    for name in names:
        found = os.lstat(f"{directory}/{name}")
        if stat.S_ISBLK(found.st_mode):
            say("escaped", "block-device", name)
