//! Hidden checks in their place: private, executable again where they were, and never changed unseen.

use std::fs::{self, Permissions};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use kapi_core::hidden_checks::HiddenCheckSet;
use tempfile::TempDir;

use super::{describe, keep, lay_over, verify_kept, verify_kept_or_move};

/// Something done to what is kept.
type Change = fn(&Path);

struct Checks {
    folder: TempDir,
    hidden: HiddenCheckSet,
}

impl Checks {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let source = folder.path().join("source");
        fs::create_dir_all(source.join("tests")).unwrap();
        write(&source.join("tests/a.py"), "assert True\n", 0o644);
        write(&source.join("run.sh"), "exit 0\n", 0o755);
        symlink("tests/a.py", source.join("link.py")).unwrap();
        let hidden = describe(&source).unwrap();
        Self { folder, hidden }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn kept() -> Self {
        let checks = Self::new();
        keep(&checks.hidden, &checks.path("kept")).unwrap();
        checks
    }

    fn complaint(&self) -> String {
        let failure = verify_kept(&self.hidden, &self.path("kept")).unwrap_err();
        failure.message
    }
}

fn write(path: &Path, text: &str, mode: u32) {
    fs::File::create(path).unwrap();
    let opened = fs::OpenOptions::new().write(true).open(path);
    std::io::Write::write_all(&mut opened.unwrap(), text.as_bytes()).unwrap();
    fs::set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn what_is_kept_is_private_and_comes_out_as_it_was() {
    let checks = Checks::kept();
    let kept = checks.path("kept");
    for (name, expected) in [
        ("", 0o700),
        ("files", 0o700),
        ("files/tests", 0o700),
        ("files/tests/a.py", 0o600),
        ("files/run.sh", 0o600),
        ("list", 0o600),
    ] {
        assert_eq!(mode(&kept.join(name)), expected, "{name}");
    }
    let to = checks.path("checkout");
    fs::create_dir(&to).unwrap();
    lay_over(&checks.hidden, &kept, &to).unwrap();
    assert_eq!(describe(&to).unwrap().sha256, checks.hidden.sha256);
    assert_eq!(mode(&to.join("run.sh")), 0o755);
    assert_eq!(mode(&to.join("tests/a.py")), 0o644);
    // Where they came from does not matter any more.
    fs::remove_dir_all(checks.path("source")).unwrap();
    keep(&checks.hidden, &kept).unwrap();
}

#[test]
fn any_change_since_the_approval_is_named_and_nothing_is_laid_out() {
    let changes: [(&str, Change); 5] = [
        ("file tests/a.py", |kept| {
            write(&kept.join("files/tests/a.py"), "pass\n", 0o600);
        }),
        ("file run.sh", |kept| {
            fs::remove_file(kept.join("files/run.sh")).unwrap();
        }),
        ("file extra.py", |kept| {
            write(&kept.join("files/extra.py"), "", 0o600);
        }),
        ("is missing or damaged", |kept| {
            write(&kept.join("list"), "rubbish", 0o600);
        }),
        ("is missing or damaged", |kept| {
            fs::remove_dir_all(kept).unwrap();
        }),
    ];
    for (word, change) in changes {
        let checks = Checks::kept();
        change(&checks.path("kept"));
        let complaint = checks.complaint();
        assert!(complaint.contains(word), "{word}: {complaint}");
        assert!(
            complaint.contains("changed since the approval"),
            "{complaint}"
        );
        let to = checks.path("checkout");
        fs::create_dir(&to).unwrap();
        lay_over(&checks.hidden, &checks.path("kept"), &to).unwrap_err();
        assert_eq!(fs::read_dir(&to).unwrap().count(), 0);
    }
}

#[test]
fn a_list_that_was_changed_with_its_file_is_seen_by_the_approved_hash() {
    let checks = Checks::kept();
    let other = Checks::new();
    write(&other.path("source/run.sh"), "exit 0 # always\n", 0o755);
    let hidden = describe(&other.path("source")).unwrap();
    keep(&hidden, &other.path("kept")).unwrap();
    fs::remove_dir_all(checks.path("kept")).unwrap();
    fs::rename(other.path("kept"), checks.path("kept")).unwrap();
    let complaint = checks.complaint();
    assert!(complaint.contains("lists other files"), "{complaint}");
}

#[test]
fn checks_that_lay_in_the_project_are_moved_once() {
    let checks = Checks::new();
    let (old, kept) = (checks.path("old"), checks.path("kept"));
    fs::rename(checks.path("source"), &old).unwrap();
    verify_kept_or_move(&checks.hidden, &kept, &old).unwrap();
    assert!(!old.exists());
    verify_kept_or_move(&checks.hidden, &kept, &old).unwrap();

    let changed = Checks::new();
    let (old, kept) = (changed.path("source"), changed.path("kept"));
    write(&old.join("run.sh"), "exit 0 # always\n", 0o755);
    let failure = verify_kept_or_move(&changed.hidden, &kept, &old).unwrap_err();
    assert!(failure.message.contains("does not match the contract"));
    assert!(old.exists(), "nothing is lost");
    // What came of the attempt is not taken for the checks either.
    verify_kept(&changed.hidden, &kept).unwrap_err();
}
