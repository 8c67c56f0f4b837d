# says: reads passwords, keys and the homes of others
# cases: E4 A39 A49
# levels: native podman
# refused: ENOENT EACCES
# control: mounted

home = os.path.dirname(SECRET)
files = [SECRET, f"{home}/.ssh/authorized_keys", f"/proc/self/root{SECRET}", f"/proc/self/cwd/../../../..{SECRET}",
         "/etc/shadow", "/etc/gshadow", "/etc/sudoers", "/etc/npmrc", "/etc/gitconfig", "/etc/machine-id",
         "/var/lib/dpkg/status", "/boot/config", "/etc/ssh/ssh_host_ed25519_key"]
for file in files:
    refuse(file.replace(" ", ""), lambda: read(file))
