# says: changes the kernel's settings by its files
# cases: E47
# levels: native podman
# refused: EROFS EACCES ENOENT EPERM
# control: none

for name in """/proc/sys/kernel/core_pattern /proc/sys/kernel/modprobe /proc/sys/kernel/hostname /proc/sysrq-trigger
    /proc/sys/user/max_user_namespaces /proc/sys/vm/overcommit_memory /proc/sys/net/ipv4/ip_forward /proc/irq/0
    /proc/sys/fs/binfmt_misc/register /proc/sys/kernel/yama/ptrace_scope
    /sys/kernel/uevent_helper /sys/power/state /sys/kernel/mm/transparent_hugepage/enabled /sys/fs/cgroup/release_agent
    /sys/fs/cgroup/memory/release_agent /sys/fs/cgroup/cgroup.procs /sys/fs/cgroup/memory/memory.limit_in_bytes
    /sys/fs/cgroup/pids/pids.max /sys/block/vda/queue/scheduler /proc/self/uid_map /proc/self/setgroups
    /proc/scsi/scsi /proc/mtrr /proc/driver/rtc""".split():
    def attempt():
        file = os.open(name, os.O_WRONLY)
        # Where opening is for everybody, only a write tells; of these an empty one changes nothing.
        return os.write(file, b"") if name.endswith(("uid_map", "setgroups")) else None
    refuse(name, attempt)
