//! What is in the checkout and in no commit: always what `git status` says, however it is found.

use std::collections::BTreeSet;
use std::path::PathBuf;

use kapi_git::repository::{Dirt, Repository};

use crate::fixture::{Fixture, counting, git_in, reported, shell, write};

/// What git says, which is right by definition: marks and path of every entry.
fn expected(fixture: &Fixture) -> BTreeSet<(String, PathBuf)> {
    let reported = fixture.git(&[
        "--no-optional-locks",
        "status",
        "--porcelain=v1",
        "-z",
        "--no-renames",
        "--untracked-files=normal",
        "--ignore-submodules=all",
    ]);
    let entries = reported.split('\0').filter(|entry| entry.len() > 3);
    let entries = entries.map(|entry| (entry[..2].to_owned(), PathBuf::from(&entry[3..])));
    entries.collect()
}

#[track_caller]
fn check(fixture: &Fixture, what: &str) {
    let expected = expected(fixture);
    let dirt = fixture.open().dirt().expect("dirt");
    let names: BTreeSet<PathBuf> = dirt.names.iter().cloned().collect();
    let paths: BTreeSet<PathBuf> = expected.iter().map(|(_, path)| path.clone()).collect();
    assert_eq!(names, paths, "{what}");
    let count = |is: &dyn Fn(&str) -> bool| expected.iter().filter(|(marks, _)| is(marks)).count();
    let known = |marks: &str| marks != "??";
    let counted = Dirt {
        staged: count(&|marks| known(marks) && !marks.starts_with(' ')),
        modified: count(&|marks| known(marks) && !marks.ends_with(' ')),
        untracked: count(&|marks| !known(marks)),
        names: dirt.names.clone(),
    };
    assert_eq!(dirt, counted, "{what}");
}

/// Makes the files older than the index, so that what git noted of them can be relied on.
fn age(fixture: &Fixture) {
    let repo = fixture.repo();
    shell(
        &repo,
        "find . -path ./.git -prune -o -type f -exec touch -h -d '2001-02-03 04:05:06.789' {} +; \
         find . -path ./.git -prune -o -type l -exec touch -h -d '2001-02-03 04:05:06.789' {} +",
    );
    fixture.git(&["update-index", "-q", "--refresh"]);
}

fn project() -> Fixture {
    let fixture = Fixture::new();
    let repo = fixture.repo();
    for name in [
        "deep/er/a",
        "deep/er/b",
        "deep/c",
        "deep.txt",
        "deep-er",
        "empty",
        "run.sh",
    ] {
        write(&repo.join(name), if name == "empty" { "" } else { name });
    }
    shell(
        &repo,
        "chmod +x run.sh; ln -s deep link; ln -s nowhere hanging",
    );
    write(&repo.join("hollow/.gitignore"), "*\n!.gitignore\n");
    fixture.commit("more");
    age(&fixture);
    fixture
}

/// Changes by name, each as a script.
const CHANGES: &[(&str, &str)] = &[
    ("nothing", ""),
    ("only touched", "touch README"),
    ("longer", "echo more >> deep/er/a"),
    (
        "as long, and as old",
        "printf deep/er/X > deep/er/a; touch -d '2001-02-03 04:05:06.789' deep/er/a",
    ),
    ("emptied", ": > deep/c"),
    ("executable", "chmod +x README"),
    ("no longer executable", "chmod -x run.sh"),
    ("gone", "rm deep/er/b"),
    ("a whole directory gone", "rm -r deep"),
    (
        "a directory replaced by a file",
        "rm -r deep; echo x > deep",
    ),
    (
        "a directory replaced by a link",
        "mv deep ../moved; ln -s ../../moved deep",
    ),
    (
        "a file replaced by a directory",
        "rm deep/c; mkdir deep/c; echo x > deep/c/x",
    ),
    (
        "a file replaced by an empty directory",
        "rm deep/c; mkdir deep/c",
    ),
    ("a file replaced by a link", "rm README; ln -s deep README"),
    ("a link to elsewhere", "ln -sfn src link"),
    ("a link replaced by a file", "rm link; echo x > link"),
    ("new", "echo x > new; echo x > deep/er/new"),
    (
        "new directories",
        "mkdir -p a/b/c deep/n; echo x > a/b/c/d; echo x > deep/n/x",
    ),
    ("an empty directory", "mkdir -p nothing/here"),
    (
        "ignored",
        "mkdir -p build/x; echo x > build/x/y; echo x > a.tmp; echo x > deep/b.tmp",
    ),
    (
        "a directory of ignored files",
        "mkdir d; echo x > d/a.tmp; echo x > d/b.tmp",
    ),
    (
        "ignored files and one that is not",
        "mkdir d; echo x > d/a.tmp; echo x > d/b",
    ),
    (
        "all ignored by itself",
        "mkdir own; echo '*' > own/.gitignore; echo x > own/x",
    ),
    ("ignored deeper down", "mkdir -p d/e; echo x > d/e/a.tmp"),
    ("ignored now", "echo 'new*' >> .gitignore; echo x > new1"),
    ("a nested repository", "git init -q inner; echo x > inner/x"),
    (
        "a nested repository that ignores itself",
        "git init -q inner; echo '*' > inner/.gitignore",
    ),
    ("a pipe", "mkfifo pipe"),
    ("staged", "echo x > README; git add README"),
    (
        "staged and gone back",
        "echo x > README; git add README; echo hello > README",
    ),
    ("staged as gone", "git rm -q --cached README"),
    ("promised", "echo x > new; git add -N new"),
    (
        "taken as unchanged",
        "git update-index --assume-unchanged README; echo x > README",
    ),
    (
        "left out",
        "git update-index --skip-worktree README; rm README",
    ),
    (
        "left out and there",
        "git update-index --skip-worktree README; echo x > README",
    ),
    (
        "another commit",
        "echo x > README; git commit -qam x; git reset -q --soft HEAD^",
    ),
    (
        "another format",
        "git update-index --index-version 4; echo x > README",
    ),
    ("split", "git update-index --split-index; echo x > README"),
    (
        "untracked cache",
        "git update-index --force-untracked-cache; git status -s; echo x > new",
    ),
    ("many", "for n in $(seq 300); do echo x > deep/f$n; done"),
    (
        "odd names",
        "echo x > 'a b'; echo x > \"$(printf 'a\\nb')\"; echo x > ':(top)x'; echo x > '[a]'; echo x > -x",
    ),
    (
        "a magic name in a directory that is new",
        "mkdir ':!deep'; echo x > ':!deep/x'",
    ),
    ("detached", "git checkout -q --detach; echo x >> README"),
    (
        "a directory that ignores all but one",
        "mkdir d; printf '*\\n!kept\\n' > d/.gitignore; echo x > d/kept",
    ),
    (
        "a directory that ignores all but one, which is not there",
        "mkdir d; printf '*\\n!kept\\n' > d/.gitignore",
    ),
    (
        "an ignored directory with a repository",
        "mkdir build; git init -q build/x; git init -q build",
    ),
];

#[test]
fn every_kind_of_change_is_seen() {
    for (what, script) in CHANGES {
        let fixture = project();
        shell(
            &fixture.repo(),
            &format!(
                "export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b.invalid GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b.invalid; {script}"
            ),
        );
        check(&fixture, what);
    }
}

#[test]
fn what_was_written_with_the_index_is_looked_at() {
    let fixture = Fixture::new();
    // As long as before, and in the same instant as far as the index can tell.
    let index = fixture.repo().join(".git/index");
    write(&fixture.repo().join("README"), "jello\n");
    let noted = fixture.git(&["ls-files", "--debug", "README"]);
    let noted = noted
        .lines()
        .find_map(|line| line.trim().strip_prefix("mtime: "));
    let (seconds, fraction) = noted.and_then(|at| at.split_once(':')).expect("a time");
    let time = format!("@{seconds}.{fraction:0>9}");
    for path in [&index, &fixture.repo().join("README")] {
        shell(
            fixture.root(),
            &format!("touch -d '{time}' '{}'", path.display()),
        );
    }
    check(&fixture, "in the same instant");
    assert_eq!(fixture.open().dirt().expect("dirt").modified, 1);
}

#[test]
fn sparse_checkouts_and_submodules_are_what_git_says() {
    let fixture = project();
    let repo = fixture.repo();
    fixture.git(&["sparse-checkout", "set", "src"]);
    check(&fixture, "sparse");
    fixture.git(&["sparse-checkout", "set", "--cone", "--sparse-index", "src"]);
    write(&repo.join("deep/new"), "x");
    check(&fixture, "sparse index");
    let fixture = project();
    let repo = fixture.repo();
    let id = fixture.base();
    git_in(&repo, &["init", "-q", "sub"]);
    let entry = format!("160000,{id},sub");
    fixture.git(&["update-index", "--add", "--cacheinfo", &entry]);
    fixture.git(&["commit", "-q", "-m", "submodule"]);
    write(&repo.join("sub/new"), "x");
    check(&fixture, "submodule");
}

#[test]
fn a_clean_checkout_is_not_read_by_git() {
    let fixture = project();
    let (git, path) = counting(&fixture);
    let repository = Repository::discover(&git, &fixture.repo()).expect("discover");
    assert_eq!(reported(&path), Vec::<String>::new());
    assert!(repository.dirt().expect("dirt").is_clean());
    assert_eq!(reported(&path), ["version", "rev-parse"]);
    // What every project has: ignored things, and a directory of ours that ignores itself.
    let more = "mkdir -p build/x .ilchul; echo x > build/x/y; echo '*' > .ilchul/.gitignore";
    shell(&fixture.repo(), more);
    assert!(repository.dirt().expect("dirt").is_clean());
    assert_eq!(reported(&path), ["check-ignore"]);
    write(&fixture.repo().join("README"), "changed\n");
    assert_eq!(repository.dirt().expect("dirt").modified, 1);
    assert_eq!(reported(&path), ["check-ignore", "status"]);
}

#[test]
fn all_paths_are_named() {
    let fixture = project();
    shell(
        &fixture.repo(),
        "for n in $(seq 150); do echo x > deep/f$n; done; echo x > README",
    );
    let dirt = fixture.open().dirt().expect("dirt");
    assert_eq!(
        (dirt.names.len(), dirt.untracked, dirt.modified),
        (151, 150, 1)
    );
}

#[test]
fn a_large_checkout_is_looked_through_by_several_threads() {
    let fixture = Fixture::new();
    let repo = fixture.repo();
    shell(
        &repo,
        "for d in $(seq 90); do mkdir -p many/$d/x; for f in $(seq 50); do echo $f > many/$d/x/$f; done; done",
    );
    fixture.commit("many");
    age(&fixture);
    check(&fixture, "clean");
    shell(
        &repo,
        "echo x > many/7/x/7; rm many/90/x/50; echo x > many/1/new; echo x > many/45/x/new",
    );
    check(&fixture, "changed");
}
