//! Protected paths: exactly the base's bytes, in a checkout that an agent's files shape and in one
//! that an agent's programs ran in.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use kapi_git::checkout::{CheckoutError, CheckoutPlan};
use kapi_git::id::CommitId;
use kapi_git::owned_dir::DirError;
use kapi_git::repository::Repository;

use crate::fixture::{Fixture, everything, read, shell, write};

/// Returns every file with its content and mode.
fn with_modes(dir: &Path) -> BTreeMap<PathBuf, (Vec<u8>, u32)> {
    let found = everything(dir).into_iter().map(|(path, content)| {
        let mode = fs::symlink_metadata(dir.join(&path)).expect("inspect");
        (path, (content, mode.permissions().mode()))
    });
    found.collect()
}

struct Check {
    fixture: Fixture,
    repository: Repository,
    base: CommitId,
    protect: Vec<String>,
    to: PathBuf,
}

impl Check {
    /// Prepares a base whose attributes matter themselves.
    fn new(protect: &[&str]) -> Self {
        let fixture = Fixture::new();
        let repo = fixture.repo();
        write(&repo.join(".gitattributes"), "*.win eol=crlf\n");
        write(&repo.join("tests/deep/.gitattributes"), "id ident\n");
        write(&repo.join("tests/deep/id"), "$Id$\n");
        write(&repo.join("tests/a.win"), "line\n");
        write(&repo.join("tests/unix"), "line\n");
        shell(
            &repo,
            "echo run > tests/run.sh; chmod +x tests/run.sh; ln -s run.sh tests/link
             echo top > check.sh; mkdir -p tests/sub; echo s > tests/sub/s.snap",
        );
        fixture.commit("checks");
        let repository = fixture.open();
        Self {
            repository,
            base: fixture.base(),
            protect: protect.iter().map(|glob| (*glob).to_owned()).collect(),
            to: fixture.root().join("clean"),
            fixture,
        }
    }

    fn plan<'a>(&'a self, commit: &'a CommitId) -> CheckoutPlan<'a> {
        CheckoutPlan {
            commit,
            base: &self.base,
            protect: &self.protect,
            to: &self.to,
        }
    }

    /// Returns a plain checkout of the base, made by git alone.
    fn original(&self) -> BTreeMap<PathBuf, (Vec<u8>, u32)> {
        let dir = self.fixture.root().join("original");
        if !dir.exists() {
            let path = dir.display().to_string();
            self.fixture
                .git(&["worktree", "add", "-q", "--detach", &path]);
        }
        let mut found = with_modes(&dir);
        found.remove(Path::new(".git"));
        found
    }

    /// Returns the base with other attributes and nothing else changed.
    fn commit_with_attributes(&self, text: &str) -> CommitId {
        write(&self.fixture.root().join("attributes"), text);
        let blob = self.fixture.git(&["hash-object", "-w", "../attributes"]);
        let info = format!("100644,{blob},.gitattributes");
        self.fixture.git(&["update-index", "--cacheinfo", &info]);
        let tree = self.fixture.git(&["write-tree"]);
        self.fixture.git(&["read-tree", "HEAD"]);
        let args = ["commit-tree", "-p", "HEAD", "-m", "attributes", &tree];
        CommitId::parse(&self.fixture.git(&args)).expect("commit id")
    }

    /// Makes a checkout of the base, runs a script in it and puts the protected paths back.
    #[track_caller]
    fn restored_after(&self, script: &str) -> Vec<String> {
        self.repository
            .checkout(&self.plan(&self.base))
            .expect("checkout");
        write(&self.to.join(".git"), "");
        shell(&self.to, script);
        let restored = self
            .repository
            .restore_protected(&self.plan(&self.base))
            .expect("restored");
        assert_eq!(read(&self.to.join(".git")), "", "{script}");
        fs::remove_file(self.to.join(".git")).expect("remove");
        let again = self
            .repository
            .restore_protected(&self.plan(&self.base))
            .expect("restored again");
        assert_eq!(again, [""; 0].map(PathBuf::from), "{script}");
        let name = |path: PathBuf| path.display().to_string();
        restored.into_iter().map(name).collect()
    }
}

#[test]
fn a_commits_attributes_do_not_change_protected_bytes() {
    let check = Check::new(&["tests/**", "check.sh"]);
    let original = check.original();
    for text in [
        "check.sh working-tree-encoding=UTF-7\n",
        "* working-tree-encoding=UTF-16\n",
        "* working-tree-encoding=nonsense\n",
        "* text eol=crlf\n",
        "*.win -text\n* -ident\n",
        "* ident\n* filter=x\n",
        "[attr]evil text eol=crlf\n* evil\n",
    ] {
        let commit = check.commit_with_attributes(text);
        let changes = check
            .repository
            .protected_changes(&check.base, &commit, &check.protect)
            .expect("changes");
        assert_eq!(changes, [], "{text}");
        let tree = check
            .repository
            .checkout(&check.plan(&commit))
            .expect("checkout");
        assert_eq!(tree, check.repository.tree_of(&commit).expect("tree"));
        let mut found = with_modes(&check.to);
        found.retain(|path, _| path.starts_with("tests") || path.ends_with("check.sh"));
        let mut expected = original.clone();
        expected.retain(|path, _| path.starts_with("tests") || path.ends_with("check.sh"));
        assert_eq!(found, expected, "{text}");
    }
    assert_eq!(read(&check.to.join("tests/a.win")), "line\r\n");
    assert!(read(&check.to.join("tests/deep/id")).starts_with("$Id: "));
}

#[test]
fn a_programs_changes_to_protected_paths_are_undone() {
    let check = Check::new(&["tests/**", "check.sh"]);
    let original = check.original();
    let outside = check.fixture.root().join("outside");
    for (script, expected) in [
        ("true", vec![]),
        ("echo x > check.sh", vec!["check.sh"]),
        ("touch -d @1 check.sh tests/run.sh", vec![]),
        (
            "chmod 0 check.sh; chmod -x tests/run.sh; chmod 600 tests/unix; chmod u+s tests/a.win",
            vec!["check.sh", "tests/a.win", "tests/run.sh", "tests/unix"],
        ),
        (
            "rm check.sh; mkfifo check.sh; rm tests/unix; mkfifo tests/unix tests/pipe",
            vec!["check.sh", "tests/pipe", "tests/unix"],
        ),
        ("chmod 0 tests", vec![]),
        (
            "rm check.sh; mkdir -p check.sh/in; touch check.sh/in/x; chmod 0 check.sh/in check.sh",
            vec!["check.sh", "check.sh/in/x"],
        ),
        (
            "ln -sf /etc/passwd tests/link; rm tests/run.sh; ln -s ../check.sh tests/run.sh",
            vec!["tests/link", "tests/run.sh"],
        ),
        (
            "ln check.sh other; echo 'a
b' > 'tests/new
line'; mkdir -p tests/x/.git; echo x > tests/x/.git/x; git init -q tests/deep; rm other",
            vec!["tests/deep/.git", "tests/new\nline", "tests/x/.git"],
        ),
    ] {
        let found = check.restored_after(script);
        assert_eq!(found, expected, "{script}");
        let mut found = with_modes(&check.to);
        // An empty directory is nothing to git.
        found.remove(Path::new("tests/x"));
        let mut expected = original.clone();
        if script.contains("chmod 0 tests") {
            found.remove(Path::new("tests"));
            expected.remove(Path::new("tests"));
        }
        assert_eq!(found, expected, "{script}");
    }
    // A directory replaced by a link: what it leads to is not touched.
    write(&outside.join("run.sh"), "mine\n");
    write(&outside.join("more"), "mine\n");
    let script = format!("rm -r tests; ln -s '{}' tests", outside.display());
    assert!(
        check
            .restored_after(&script)
            .contains(&"tests/run.sh".to_owned())
    );
    assert_eq!(with_modes(&check.to), original);
    assert_eq!(read(&outside.join("run.sh")), "mine\n");
    assert_eq!(read(&outside.join("more")), "mine\n");
    // The whole checkout replaced by a link.
    let script = format!(
        "cd ..; rm -r clean; ln -s '{}' clean; true",
        outside.display()
    );
    check
        .repository
        .checkout(&check.plan(&check.base))
        .expect("checkout");
    shell(&check.to, &script);
    check
        .repository
        .restore_protected(&check.plan(&check.base))
        .expect("restored");
    assert!(!check.to.is_symlink() && check.to.join("check.sh").exists());
    assert_eq!(everything(&outside).len(), 2);
}

#[test]
fn a_second_name_of_a_protected_file_is_no_way_in() {
    let check = Check::new(&["check.sh"]);
    assert_eq!(check.restored_after("ln check.sh other"), ["check.sh"]);
    shell(&check.to, "echo evil > other");
    assert_eq!(read(&check.to.join("check.sh")), "top\n");
}

#[test]
fn what_is_not_protected_stays_as_the_programs_left_it() {
    let check = Check::new(&["**/*.snap", "tests/deep", "absent/**"]);
    let found = check.restored_after(
        "echo built > tests/unix; rm tests/run.sh; mkdir -p out/x absent; echo o > out/x/o
         echo evil > out/x/evil.snap; echo e > absent/e; echo e > tests/sub/s.snap
         echo e > tests/deep/extra; mkfifo pipe; ln -s /etc etc; ln -s tests/sub dirlink
         mkdir -p out/.git; echo e > out/.git/inside.snap; mkdir shut; touch shut/keep; chmod 0 shut",
    );
    assert_eq!(
        found,
        [
            "absent/e",
            "out/x/evil.snap",
            "tests/deep/extra",
            "tests/sub/s.snap"
        ]
    );
    assert_eq!(read(&check.to.join("tests/unix")), "built\n");
    assert_eq!(read(&check.to.join("out/x/o")), "o\n");
    assert_eq!(read(&check.to.join("out/.git/inside.snap")), "e\n");
    assert_eq!(read(&check.to.join("tests/sub/s.snap")), "s\n");
    assert!(!check.to.join("tests/run.sh").exists());
    assert!(check.to.join("shut/keep").exists());
    assert!(fs::symlink_metadata(check.to.join("pipe")).is_ok());
    assert!(check.to.join("etc").is_symlink() && check.to.join("dirlink").is_symlink());
}

#[test]
fn everything_may_be_protected_but_for_the_place_where_git_is_shown() {
    let check = Check::new(&["**"]);
    let found = check.restored_after("echo x > README; echo x > new; mkdir .GIT; echo x > .GIT/x");
    assert_eq!(found, [".GIT", "README", "new"]);
    assert_eq!(with_modes(&check.to), check.original());
}

#[test]
fn odd_names_do_not_push_each_other_out_of_the_search() {
    let check = Check::new(&["tests/**"]);
    let found = check.restored_after(
        "cd tests; mkdir -p .git/x .GIT .git-0 .Git-1; echo e > .git/x/e; echo e > .GIT/e
         echo e > .git-0/e; echo e > .Git-1/e; mkdir git~1; echo e > git~1/config
         echo e > '.git '; echo e > ' '; echo e > -rf; echo e > $(printf '\\377\\376')
         echo e > 'a\\b'; echo e > CON; echo e > .gitmodules; ln -s x deep/.gitmodules",
    );
    let expected = 13;
    assert_eq!(found.len(), expected, "{found:?}");
    assert_eq!(
        everything(&check.to.join("tests"))
            .into_values()
            .filter(|content| content == b"e\n")
            .count(),
        0
    );
}

#[test]
fn a_tree_too_deep_to_look_into_goes() {
    let check = Check::new(&["tests/**"]);
    let found = check.restored_after(
        "name=$(printf 'd%.0s' $(seq 200)); mkdir deep; echo x > deep/x
         for i in $(seq 40); do mkdir above; mv deep above/$name; mv above deep; done; mv deep tests/ddd",
    );
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].len() < 4_000);
    let original = check.original();
    let mut left = with_modes(&check.to);
    left.retain(|path, _| !path.display().to_string().contains("ddd"));
    assert_eq!(left, original);
}

#[test]
fn only_a_checkout_is_restored() {
    let check = Check::new(&["check.sh"]);
    write(&check.to.join("check.sh"), "precious");
    let error = check
        .repository
        .restore_protected(&check.plan(&check.base))
        .expect_err("not a checkout");
    assert!(
        matches!(error, CheckoutError::Dir(DirError::Foreign { .. })),
        "{error}"
    );
    assert_eq!(read(&check.to.join("check.sh")), "precious");
}
