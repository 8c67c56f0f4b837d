# says: climbs out by dots and odd names
# cases: E11 A33
# levels: native podman
# refused: ENOENT ENAMETOOLONG ENOTDIR
# control: mounted

for name in ["-rf", "a\nb", "a\rb", "\x1b[31m", "...", " ", "*", "$(id)", ";id"]:
    os.mkdir(name)
os.mkdir(os.fsencode("x") + b"\xff")
for depth in (8, 40, 400):
    refuse(f"dots-{depth}", lambda: read("../" * depth + SECRET[1:]))
refuse("odd", lambda: read(f"-rf/../a\nb/.././{'../' * 12}{SECRET[1:]}"))
refuse("slashes", lambda: read(f"//{'.//' * 9}{SECRET}"))
