# says: gains by programs that run as their owner
# cases: E39 A36
# levels: native podman
# control: namespaces

import subprocess
status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\t" in line)
for name, wanted in {"CapInh": 0, "CapPrm": 0, "CapEff": 0, "CapBnd": 0, "CapAmb": 0}.items():
    if int(status[name], 16) != wanted:
        say("escaped", name, status[name])
for name, wanted in {"NoNewPrivs": "1", "Seccomp": "2"}.items():
    if status[name] != wanted:
        say("escaped", name, status[name])
for program in ("/usr/bin/su", "/usr/bin/sudo", "/usr/bin/passwd", "/usr/bin/newgrp", "/usr/bin/mount"):
    if os.path.exists(program) and os.stat(program).st_mode & 0o4000:
        user = subprocess.run(["/usr/bin/python3", "-I", "-c", "import os; print(os.geteuid())"], capture_output=True)
        if int(user.stdout) != os.getuid():
            say("escaped", program)
say("tried", "capabilities")
