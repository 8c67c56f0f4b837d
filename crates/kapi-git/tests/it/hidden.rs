//! Hidden checks over a checkout that an agent shaped.

use std::fs;
use std::path::PathBuf;

use kapi_git::hidden::{BYTES_MAX, ENTRIES_MAX, HiddenError, check, copy_hidden};

use crate::fixture::{Fixture, read, shell, write};

#[test]
fn hidden_files_replace_and_are_never_written_through_links() {
    let fixture = Fixture::new();
    let (from, to) = (fixture.root().join("hidden"), fixture.root().join("clean"));
    let outside = fixture.root().join("outside");
    for name in ["checks/a.sh", "checks/sub/b", "plain", "dir"] {
        write(&from.join(name), "hidden");
    }
    shell(
        &from,
        "chmod 755 checks/a.sh; ln -s checks/a.sh link; mkdir empty",
    );
    write(&outside.join("a.sh"), "mine");
    write(&outside.join("plain"), "mine");
    fs::create_dir(&to).expect("create");
    shell(
        &to,
        "ln -s ../outside checks; ln -s ../outside/plain plain; mkdir -p dir/in link; echo k > kept",
    );
    let checked = check(&from).expect("checked");
    let copied = copy_hidden(&from, &to).expect("copied");
    assert_eq!(checked, copied);
    let expected = ["checks/a.sh", "checks/sub/b", "dir", "link", "plain"].map(PathBuf::from);
    assert_eq!(copied.paths, expected);
    assert_eq!(copied.bytes, 24);
    for name in ["checks/a.sh", "checks/sub/b", "plain", "dir", "link"] {
        assert_eq!(read(&to.join(name)), "hidden", "{name}");
    }
    assert_eq!(shell(&to, "stat -c %a checks/a.sh"), "755");
    assert!(!to.join("checks").is_symlink() && to.join("kept").exists());
    assert_eq!(
        read(&outside.join("a.sh")) + &read(&outside.join("plain")),
        "minemine"
    );
    assert_eq!(copy_hidden(&from, &to).expect("copied again"), copied);
}

#[test]
fn hidden_links_that_lead_out_and_special_files_are_refused() {
    for script in [
        "ln -s /etc/passwd x",
        "ln -s ../clean x",
        "mkdir d; ln -s ../.. d/x",
        "mkdir -p d/e; ln -s ../.. d/e/up; ln -s up/../x d/e/x; echo x > ../x",
        "mkfifo x",
        "mkdir .git",
        "ln -s x .GIT",
    ] {
        let fixture = Fixture::new();
        let (from, to) = (fixture.root().join("hidden"), fixture.root().join("clean"));
        fs::create_dir(&from).expect("create");
        fs::create_dir(&to).expect("create");
        shell(&from, script);
        write(&from.join("a"), "before");
        let checked = check(&from).expect_err(script);
        let error = copy_hidden(&from, &to).expect_err(script);
        assert_eq!(checked.to_string(), error.to_string());
        // Nothing is copied of what cannot be copied whole.
        assert_eq!(shell(&to, "ls -A"), "", "{script}");
        let is_expected = match error {
            HiddenError::GitData { .. } => script.to_lowercase().ends_with(".git"),
            HiddenError::LeavesDirectory { .. } => {
                script.starts_with("ln") || script.starts_with("mkdir")
            }
            HiddenError::SpecialFile { .. } => script.starts_with("mkfifo"),
            _ => false,
        };
        assert!(is_expected, "{script}");
    }
}

#[test]
fn more_hidden_checks_than_are_taken_are_refused_before_any_is_read() {
    let fixture = Fixture::new();
    let from = fixture.root().join("hidden");
    write(&from.join("deep/.git/is/fine/here"), "x");
    assert_eq!(check(&from).expect("checked").bytes, 1);
    // Too large to be read within the time of a test.
    shell(&from, &format!("truncate -s {BYTES_MAX} huge"));
    let error = check(&from).expect_err("huge");
    assert!(matches!(error, HiddenError::TooMuch { .. }), "{error}");
    shell(
        &from,
        &format!("rm huge; mkdir many; cd many; seq {ENTRIES_MAX} | xargs mkdir"),
    );
    let error = check(&from).expect_err("many");
    assert!(matches!(error, HiddenError::TooMuch { .. }), "{error}");
    let missing = check(&fixture.root().join("missing")).expect_err("missing");
    assert!(matches!(missing, HiddenError::Dir(_)), "{missing}");
}
