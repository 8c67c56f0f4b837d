//! Clean checkouts: what is in them, and that nothing else is.

use std::fs;

use kapi_git::checkout::{CheckoutError, CheckoutPlan};
use kapi_git::owned_dir::{self, DirError};

use crate::fixture::{Fixture, changed, commit, everything, read, shell, write};

#[test]
fn a_checkout_is_the_commit_and_nothing_else() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    shell(
        &workspace.path,
        "echo two > src/main.txt; ln -s src/main.txt pw; echo x > 'a
b'; mkdir build; echo ignored > build/b; chmod 4755 tests/check.sh",
    );
    let candidate = commit(&repository, &workspace);
    let before = everything(&fixture.repo());
    let to = fixture.root().join("clean/one");
    let base = fixture.base();
    let plan = CheckoutPlan {
        commit: &candidate.commit,
        base: &base,
        protect: &[],
        to: &to,
    };
    let tree = repository.checkout(&plan).expect("checkout");
    assert_eq!(tree, candidate.tree);
    let found: Vec<String> = everything(&to)
        .into_keys()
        .map(|path| path.display().to_string())
        .collect();
    let expected = [
        ".gitignore",
        "README",
        "a\nb",
        "pw",
        "src",
        "src/main.txt",
        "tests",
        "tests/check.sh",
    ];
    assert_eq!(found, expected);
    assert_eq!(
        fs::read_link(to.join("pw")).expect("link").as_os_str(),
        "src/main.txt"
    );
    assert_eq!(shell(&to, "stat -c %a tests/check.sh"), "755");
    assert_eq!(everything(&fixture.repo()), before);
}

#[test]
fn protected_paths_are_as_in_the_base_whatever_was_done_to_them() {
    for (tamper, expected) in [
        (
            "echo 'exit 0' > tests/check.sh",
            vec!["tests/check.sh Modified"],
        ),
        ("rm tests/check.sh", vec!["tests/check.sh Deleted"]),
        ("chmod +x tests/check.sh", vec!["tests/check.sh Mode"]),
        ("mv tests/check.sh moved", vec!["tests/check.sh Deleted"]),
        ("echo x > tests/conftest", vec!["tests/conftest Added"]),
        (
            "ln -sf ../README tests/check.sh",
            vec!["tests/check.sh Type"],
        ),
        (
            "rm -r tests; ln -s src tests",
            vec!["tests/check.sh Deleted"],
        ),
        (
            "rm -r tests; echo x > tests",
            vec!["tests/check.sh Deleted"],
        ),
        (
            "rm tests/check.sh; mkdir tests/check.sh; echo x > tests/check.sh/x",
            vec!["tests/check.sh Deleted", "tests/check.sh/x Added"],
        ),
        ("echo x > src/main.txt", vec![]),
    ] {
        let fixture = Fixture::new();
        let (repository, workspace) = fixture.workspace();
        shell(&workspace.path, tamper);
        let candidate = commit(&repository, &workspace);
        let base = fixture.base();
        let protect = ["tests/**".to_owned()];
        let found = repository.protected_changes(&base, &candidate.commit, &protect);
        let mut seen = candidate.clone();
        seen.changed = found.expect("changes");
        assert_eq!(changed(&seen), expected, "{tamper}");
        let to = fixture.root().join("clean");
        let plan = CheckoutPlan {
            commit: &candidate.commit,
            base: &base,
            protect: &protect,
            to: &to,
        };
        let tree = repository.checkout(&plan).expect("checkout");
        assert_eq!(tree == candidate.tree, expected.is_empty(), "{tamper}");
        assert_eq!(
            shell(
                &to,
                "cat tests/check.sh; ls tests; stat -c %a,%F tests/check.sh tests"
            ),
            "exit 1\ncheck.sh\n644,regular file\n755,directory",
            "{tamper}"
        );
    }
}

#[test]
fn a_checkout_wipes_its_own_directory_and_no_other() {
    let fixture = Fixture::new();
    let repository = fixture.open();
    let base = fixture.base();
    let to = fixture.root().join("clean");
    let plan = CheckoutPlan {
        commit: &base,
        base: &base,
        protect: &[],
        to: &to,
    };
    write(&to.join("precious"), "x");
    let error = repository.checkout(&plan).expect_err("not ours");
    assert!(
        matches!(error, CheckoutError::Dir(DirError::Foreign { .. })),
        "{error}"
    );
    assert_eq!(read(&to.join("precious")), "x");
    assert!(owned_dir::discard(&to).is_err());
    fs::remove_file(to.join("precious")).expect("remove");
    repository.checkout(&plan).expect("checkout");
    shell(
        &to,
        "echo left > over; mkdir -p shut/in; chmod 0 shut; rm README",
    );
    repository.checkout(&plan).expect("checkout again");
    assert!(!to.join("over").exists() && !to.join("shut").exists() && to.join("README").exists());
    owned_dir::discard(&to).expect("discard");
    owned_dir::discard(&to).expect("discard again");
    assert!(!to.exists());
    let left: Vec<_> = everything(fixture.root())
        .into_keys()
        .filter(|path| path.display().to_string().contains("clean"))
        .collect();
    assert_eq!(left, [""; 0].map(std::path::PathBuf::from));
}

#[test]
fn a_checkout_runs_no_filter_and_expands_line_endings() {
    let fixture = Fixture::new();
    let trap = fixture.trap();
    write(
        &fixture.repo().join(".gitattributes"),
        "*.txt eol=crlf filter=evil\n",
    );
    fixture.commit("attributes");
    fixture.git(&["config", "filter.evil.smudge", &trap]);
    let base = fixture.base();
    let to = fixture.root().join("clean");
    let plan = CheckoutPlan {
        commit: &base,
        base: &base,
        protect: &["src".to_owned()],
        to: &to,
    };
    fixture.open().checkout(&plan).expect("checkout");
    assert_eq!(read(&to.join("src/main.txt")), "one\r\n");
    fixture.assert_not_sprung();
    fixture.git(&["archive", "-o", "/dev/null", "HEAD"]);
    fixture.assert_sprung();
}
