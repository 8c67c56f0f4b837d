//! Programs are found where people install them, also where `PATH` does not lead there.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use kapi_sandbox::search_path::search_path;
use kapi_sys::process::find_in_path;
use tempfile::TempDir;

use crate::workplace::write;

fn program(home: &Path, name: &str) {
    let path = home.join(name);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    write(&path, b"\x7fELF");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns where a program is found, relative to the home; `~` in a variable stands for it.
fn found(home: &Path, variables: &[(&str, &str)], name: &str) -> String {
    let env: BTreeMap<OsString, OsString> = variables
        .iter()
        .map(|(name, value)| {
            let value = value.replace('~', home.to_str().unwrap());
            (OsString::from(name), OsString::from(value))
        })
        .collect();
    let found = find_in_path(name.as_ref(), &search_path(&env, home)).unwrap();
    found.strip_prefix(home).unwrap().display().to_string()
}

#[test]
fn every_usual_place_is_looked_in() {
    for location in [
        ".npm-global/bin",
        ".local/share/pnpm",
        ".local/share/pnpm/bin",
        ".yarn/bin",
        ".config/yarn/global/node_modules/.bin",
        ".bun/bin",
        ".local/bin",
        ".claude/local/node_modules/.bin",
        ".linuxbrew/bin",
        ".nix-profile/bin",
        ".volta/bin",
        ".volta/tools/image/packages/@x/agent/bin",
        ".nvm/versions/node/v22.1.0/bin",
        ".local/share/fnm/node-versions/v22.1.0/installation/bin",
        ".asdf/shims",
        ".asdf/installs/nodejs/22.1.0/bin",
        ".local/share/mise/shims",
        ".local/share/mise/installs/node/22.1.0/bin",
        ".nodenv/versions/22.1.0/bin",
        "n/bin",
        "node/bin",
        "sdk/agent-1.2/bin",
    ] {
        let home = TempDir::new().unwrap();
        let name = format!("{location}/agent");
        program(home.path(), &name);
        assert_eq!(found(home.path(), &[("PATH", "/nowhere")], "agent"), name);
    }
}

#[test]
fn variables_and_npms_configuration_say_where_else() {
    for (variable, location) in [
        ("NPM_CONFIG_PREFIX", "x/bin"),
        ("PNPM_HOME", "x"),
        ("BUN_INSTALL", "x/bin"),
        ("HOMEBREW_PREFIX", "x/bin"),
        ("VOLTA_HOME", "x/bin"),
        ("NVM_DIR", "x/versions/node/v1/bin"),
        ("FNM_DIR", "x/node-versions/v1/installation/bin"),
        ("ASDF_DATA_DIR", "x/shims"),
        ("MISE_DATA_DIR", "x/shims"),
        ("N_PREFIX", "x/bin"),
    ] {
        let home = TempDir::new().unwrap();
        let name = format!("{location}/agent");
        program(home.path(), &name);
        let variables = [("PATH", "/nowhere"), (variable, "~/x")];
        assert_eq!(found(home.path(), &variables, "agent"), name);
    }
    for line in [
        "prefix=~/own",
        "prefix = \"${HOME}/own\"",
        "a=b\nprefix=own/../own",
    ] {
        let home = TempDir::new().unwrap();
        program(home.path(), "own/bin/agent");
        write(&home.path().join(".npmrc"), line.as_bytes());
        let env = BTreeMap::new();
        let path = search_path(&env, home.path());
        let found = find_in_path("agent".as_ref(), &path);
        assert_eq!(found.is_some(), !line.contains(".."), "{line}");
    }
}

#[test]
fn path_comes_first_and_a_stand_in_after_what_it_stands_for() {
    let home = TempDir::new().unwrap();
    program(home.path(), "first/agent");
    program(home.path(), ".local/bin/agent");
    let variables = [("PATH", "~/first:/usr/bin")];
    assert_eq!(found(home.path(), &variables, "agent"), "first/agent");
    for name in [
        ".asdf/shims/tool",
        ".asdf/installs/nodejs/9.1.0/bin/tool",
        ".asdf/installs/nodejs/22.1.0/bin/tool",
        "later/tool",
    ] {
        program(home.path(), name);
    }
    let variables = [("PATH", "~/.asdf/shims:~/later")];
    let newest = ".asdf/installs/nodejs/22.1.0/bin/tool";
    assert_eq!(found(home.path(), &variables, "tool"), newest);
}
