# says: loads modules and another kernel
# cases: E45
# levels: native podman
# refused: EPERM ENOSYS
# control: namespaces

refuse("module", lambda: call("init_module", b"not a module", 12, b""))
refuse("module-file", lambda: call("finit_module", -1, b"", 0))
refuse("unload", lambda: call("delete_module", b"no_such_module_here", 0x800))
refuse("kernel", lambda: call("kexec_load", 0, 999, 0, 0xFFFF))
refuse("kernel-file", lambda: call("kexec_file_load", -1, -1, 0, 0, 0))
refuse("dump-pages", lambda: call("move_pages", -1, 0, 0, 0, 0, 0))
refuse("migrate", lambda: call("migrate_pages", -1, 0, 0, 0))
