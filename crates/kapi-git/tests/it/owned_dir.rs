//! Wiping what hostile programs leave, as root and as an ordinary user.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use kapi_git::owned_dir::wipe;

use crate::fixture::{Fixture, read, run_with, shell, write};

/// How many directories lie in each other: more than files may be open or calls be nested.
const DEPTH: usize = 10_000;

/// Tells the second process of a test that it is the one without privileges.
const INNER: &str = "KAPI_TEST_ORDINARY_USER";

fn make_and_wipe(dir: &Path) {
    shell(
        dir,
        "mkdir -p outside victim/a/b/c victim/shut/in/side victim/empty
         echo mine > outside/file; ln -s ../outside victim/link; ln -s ../../outside/file victim/a/link
         echo x > victim/shut/in/x; echo x > victim/.kapi-wipe-1; mkdir -p victim/.kapi-wipe-2/x
         mkfifo victim/pipe",
    );
    // From the inside out, because the whole path cannot be named.
    let (deep, above) = (dir.join("deep"), dir.join("above"));
    fs::create_dir(&deep).expect("create");
    for _ in 0..DEPTH {
        fs::create_dir(&above).expect("create");
        fs::rename(&deep, above.join("d")).expect("move");
        fs::rename(&above, &deep).expect("move");
    }
    fs::rename(&deep, dir.join("victim/a/b/c/deep")).expect("move");
    shell(
        dir,
        "chmod 0 victim/shut/in/side victim/shut/in victim/shut victim/empty; chmod 500 victim/a victim",
    );
    let victim = dir.join("victim");
    wipe(&victim).expect("wiped");
    assert!(fs::symlink_metadata(&victim).is_err());
    assert_eq!(read(&dir.join("outside/file")), "mine\n");
    wipe(&victim).expect("wiped again");
    wipe(&dir.join("outside/file/below")).expect("nothing can be there");
    shell(dir, "ln -s outside victim");
    wipe(&victim).expect("link wiped");
    assert_eq!(read(&dir.join("outside/file")), "mine\n");
}

#[test]
fn a_hostile_tree_is_wiped_and_nothing_it_leads_to() {
    let fixture = Fixture::new();
    let dir = fixture.root().join("here");
    fs::create_dir(&dir).expect("create");
    make_and_wipe(&dir);
}

#[test]
fn an_ordinary_user_wipes_it_too() {
    let fixture = Fixture::new();
    let uid = fs::metadata(fixture.root()).expect("inspect").uid();
    if uid != 0 {
        let dir = fixture.root().join("here");
        fs::create_dir(&dir).expect("create");
        return make_and_wipe(&dir);
    }
    // Root opens every door, so another process does it as nobody.
    let test = fixture.root().join("test");
    let here = fixture.root().join("here");
    fs::copy(std::env::current_exe().expect("exe"), &test).expect("copy");
    write(&here.join("tmp/x"), "");
    shell(
        fixture.root(),
        "chmod 755 . test; chown -R 65534:65534 here",
    );
    let args = [
        "--reuid=65534",
        "--regid=65534",
        "--clear-groups",
        "--",
        &test.display().to_string(),
        "--exact",
        "owned_dir::the_ordinary_users_part",
    ];
    let args: Vec<&OsStr> = args.iter().map(OsStr::new).collect();
    let setpriv = Path::new("/usr/bin/setpriv");
    let env = [(INNER.into(), here.clone().into_os_string())];
    let (code, output) = run_with(setpriv, &here, &args, &env);
    let output = String::from_utf8_lossy(&output);
    assert_eq!(code, 0, "{output}");
    assert_eq!(read(&here.join("done")), "65534", "{output}");
}

#[test]
fn the_ordinary_users_part() {
    // By itself, in a normal run of the suite, this has nothing to do.
    let Some(dir) = std::env::var_os(INNER) else {
        return;
    };
    let dir = Path::new(&dir);
    make_and_wipe(dir);
    let uid = fs::metadata("/proc/self").expect("inspect").uid();
    write(&dir.join("done"), &uid.to_string());
}
