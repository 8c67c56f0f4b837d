//! What is mounted for programs installed in the usual ways.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use kapi_sandbox::expose::expose;
use kapi_sandbox::spec::MountAccess;
use kapi_sandbox::toolchain::toolchains;
use tempfile::TempDir;

use crate::workplace::{as_each_user, write};

/// A home with programs in it.
struct Home(TempDir);

impl Home {
    fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().canonicalize().unwrap().join(name)
    }

    fn program(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        write(&path, text.as_bytes());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        path
    }

    fn directory(&self, name: &str) {
        fs::create_dir_all(self.path(name)).unwrap();
    }

    fn link(&self, name: &str, target: &str) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, &path).unwrap();
        path
    }

    /// Checks the program, the mounts and the additions to `PATH`, all relative to the home.
    fn check(&self, program: &Path, path_var: &str, expected: &str) {
        let exposed = expose(program, OsStr::new(path_var), &self.path("")).unwrap();
        let root = self.path("");
        let short = |path: &Path| {
            path.strip_prefix(&root)
                .unwrap_or(path)
                .display()
                .to_string()
        };
        let mounts = exposed.mounts.iter().map(|mount| {
            assert_eq!(mount.access, MountAccess::ReadOnly);
            if mount.host == mount.inside {
                short(&mount.host)
            } else {
                format!("{}={}", short(&mount.inside), short(&mount.host))
            }
        });
        let mounts: Vec<String> = mounts.collect();
        let path: Vec<String> = exposed.path.iter().map(|path| short(path)).collect();
        let found = format!(
            "{} | {} | {}",
            short(&exposed.program),
            mounts.join(" "),
            path.join(" ")
        );
        assert_eq!(found, expected);
    }
}

#[test]
fn a_program_of_the_system_needs_nothing() {
    let home = Home::new();
    // One that acts by its name is called by it, whatever it leads to.
    home.check(Path::new("/bin/sh"), "", "/bin/sh |  | ");
    home.check(Path::new("sh"), "/bin", "/bin/sh |  | ");
}

#[test]
fn a_package_of_npm_brings_its_modules_and_its_node() {
    let home = Home::new();
    let node = ".nvm/versions/node/v20";
    home.program(&format!("{node}/bin/node"), "\u{7f}ELF");
    home.program(
        &format!("{node}/lib/node_modules/@x/agent/cli.js"),
        "#!/usr/bin/env node\n",
    );
    let agent = home.link(
        &format!("{node}/bin/agent"),
        "../lib/node_modules/@x/agent/cli.js",
    );
    let path_var = home.path(&format!("{node}/bin")).display().to_string();
    let expected = format!("{node}/lib/node_modules/@x/agent/cli.js | {node} | {node}/bin");
    home.check(&agent, &path_var, &expected);
    home.check(Path::new("agent"), &path_var, &expected);
}

#[test]
fn a_program_behind_relative_links_is_called_where_it_is_shown() {
    let home = Home::new();
    home.program(".npm-global/lib/node_modules/@x/agent/cli", "\u{7f}ELF");
    let agent = home.link(".npm-global/bin/agent", "../lib/node_modules/@x/agent/cli");
    home.check(
        &agent,
        "",
        ".npm-global/lib/node_modules/@x/agent/cli | .npm-global/lib/node_modules | ",
    );
}

#[test]
fn an_interpreter_beside_the_program_is_its_own() {
    let home = Home::new();
    home.program("node/bin/node", "\u{7f}ELF");
    home.program("node/lib/node_modules/a/cli.js", "#!/usr/bin/env node\n");
    home.program("other/node", "\u{7f}ELF");
    let agent = home.link("node/bin/agent", "../lib/node_modules/a/cli.js");
    let path_var = home.path("other").display().to_string();
    home.check(
        &agent,
        &path_var,
        "node/lib/node_modules/a/cli.js | node | node/bin",
    );
}

#[test]
fn homebrew_brings_programs_and_libraries_and_not_its_settings() {
    let home = Home::new();
    for part in ["opt", "lib", "etc", "var"] {
        home.directory(&format!("brew/{part}"));
    }
    home.program("brew/Cellar/agent/1.2/bin/agent", "\u{7f}ELF");
    let agent = home.link("brew/bin/agent", "../Cellar/agent/1.2/bin/agent");
    home.check(
        &agent,
        "",
        "brew/Cellar/agent/1.2/bin/agent | brew/Cellar brew/bin brew/lib brew/opt | ",
    );
}

#[test]
fn a_script_of_pnpm_brings_the_packages_that_it_leads_to() {
    let home = Home::new();
    home.directory("packages/global/5/node_modules");
    let agent = home.program("packages/agent", "#!/bin/sh\n");
    home.check(
        &agent,
        "",
        "packages/agent | packages/agent packages/global | ",
    );
}

#[test]
fn a_local_package_brings_the_outermost_modules_only() {
    let home = Home::new();
    let tool = home.program("tools/node_modules/a/node_modules/b/cli.js", "#!/bin/sh\n");
    home.check(
        &tool,
        "",
        "tools/node_modules/a/node_modules/b/cli.js | tools/node_modules | ",
    );
}

#[test]
fn a_single_binary_is_mounted_alone_and_under_the_name_it_was_called_by() {
    let home = Home::new();
    let alone = home.program("bin/agent", "\u{7f}ELF");
    home.check(&alone, "", "bin/agent | bin/agent | ");
    home.program("downloads/agent-1.2-linux", "\u{7f}ELF");
    let link = home.link("own/agent", "../downloads/agent-1.2-linux");
    home.check(
        &link,
        "",
        "own/agent | own/agent=downloads/agent-1.2-linux | ",
    );
}

#[test]
fn a_bundle_brings_its_shared_objects_but_never_the_home() {
    let home = Home::new();
    let bundled = home.program("apps/agent/agent", "\u{7f}ELF");
    home.program("apps/agent/libx.so.1", "");
    home.check(&bundled, "", "apps/agent/agent | apps/agent | ");
    home.program("libstray.so", "");
    let stray = home.program("stray", "\u{7f}ELF");
    home.check(&stray, "", "stray | stray | ");
    home.directory("lib");
    let tool = home.program("bin/tool", "\u{7f}ELF");
    home.check(&tool, "", "bin/tool | bin/tool | ");
}

#[test]
fn a_version_behind_a_link_in_local_bin_keeps_its_name() {
    let home = Home::new();
    let real = home.program(".local/share/claude/versions/2.1", "\u{7f}ELF");
    let link = home.link(".local/bin/claude", real.to_str().unwrap());
    home.check(
        &link,
        "",
        ".local/bin/claude | .local/bin .local/share/claude/versions/2.1 | ",
    );
}

#[test]
fn a_virtual_environment_brings_itself_and_the_python_behind_it() {
    let home = Home::new();
    home.program("pythons/3.11/bin/python3", "\u{7f}ELF");
    home.directory("pythons/3.11/lib");
    home.program("venv/pyvenv.cfg", "");
    home.directory("venv/lib");
    let python = home.link("venv/bin/python", "../../pythons/3.11/bin/python3");
    let aider = home.program("venv/bin/aider", &format!("#!{}\n", python.display()));
    home.check(&aider, "", "venv/bin/aider | venv pythons/3.11 | ");
}

#[test]
fn a_shim_brings_the_manager_behind_it() {
    let home = Home::new();
    home.program(".pyenv/shims/python3", "#!/usr/bin/env bash\n");
    let tool = home.program("scripts/tool", "#!/usr/bin/env python3\n");
    let path_var = format!("{}:/usr/bin:/bin", home.path(".pyenv/shims").display());
    home.check(
        &tool,
        &path_var,
        "scripts/tool | scripts/tool .pyenv | .pyenv/shims",
    );
}

#[test]
fn what_cannot_be_found_is_named() {
    let home = Home::new();
    let error = |program: &Path| {
        expose(program, OsStr::new(""), &home.path(""))
            .unwrap_err()
            .to_string()
    };
    assert_eq!(error(Path::new("/no/such")), "find program /no/such");
    assert_eq!(error(Path::new("no-such")), "find program no-such");
    let script = home.program("script", "#!/usr/bin/env no-such-interpreter\n");
    assert_eq!(
        error(&script),
        format!(
            "find interpreter no-such-interpreter of {}",
            script.display()
        )
    );
}

#[test]
fn toolchains_are_those_that_exist_and_hold_no_credentials() {
    let home = Home::new();
    for name in [
        ".cargo/bin",
        ".rustup",
        ".ssh",
        ".aws",
        ".config",
        "go/bin",
        "go/pkg",
    ] {
        home.directory(name);
    }
    let found = toolchains(&home.path(""));
    let names: Vec<String> = found
        .iter()
        .map(|mount| {
            mount
                .inside
                .strip_prefix(home.path(""))
                .unwrap()
                .display()
                .to_string()
        })
        .collect();
    assert_eq!(names, [".cargo/bin", ".rustup", "go/bin"]);
}

#[test]
fn an_exposed_script_really_runs_inside() {
    as_each_user(|location| {
        location.directory("host-home");
        location.directory("host-home/opt");
        for directory in ["bin", "lib", "lib/node_modules", "lib/node_modules/agent"] {
            location.directory(&format!("host-home/opt/{directory}"));
        }
        let node = location.file(
            "host-home/opt/bin/node-like",
            "#!/bin/sh\nshift 0; . \"$1\"\n",
        );
        let script = location.file(
            "host-home/opt/lib/node_modules/agent/cli",
            "#!/usr/bin/env node-like\necho ran in $PWD\n",
        );
        for path in [&node, &script] {
            fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
        }
        let path_var = location.path("host-home/opt/bin");
        let exposed = expose(&script, path_var.as_os_str(), &location.path("host-home")).unwrap();
        let mut request = location.shell("");
        request.argv = vec![exposed.program.display().to_string()];
        let first = exposed.path.first().unwrap().display().to_string();
        request.env = vec![("PATH".to_owned(), format!("{first}:/usr/bin:/bin"))];
        for mount in exposed.mounts {
            request.mounts.push((
                mount.host.display().to_string(),
                mount.inside.display().to_string(),
                "ro".to_owned(),
            ));
        }
        let reply = location.run(&request);
        assert_eq!(reply.stdout, "ran in /workspace\n", "{reply:?}");
    });
}
