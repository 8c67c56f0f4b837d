# says: changes programs, libraries and users of the system
# cases: E2
# levels: native podman
# refused: EROFS EACCES ENOENT
# control: writable /usr/local

for directory in "/etc /usr /usr/bin /usr/lib /usr/local /bin /lib /sbin /etc/ssl /etc/cron.d /etc/profile.d /opt /var /var/lib".split():
    refuse(directory, lambda: write(f"{directory}/{PLANTED}"))
for file in "/etc/passwd /etc/group /etc/hosts /etc/resolv.conf /etc/ld.so.preload /etc/ld.so.cache /usr/bin/env /usr/bin/id".split():
    refuse(file, lambda: os.close(os.open(file, os.O_WRONLY)))
