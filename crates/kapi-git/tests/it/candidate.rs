//! What becomes a commit, and that it is always the same one.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use kapi_git::candidate::CandidateError;
use kapi_git::diff::DiffCount;
use kapi_git::repository::Repository;

use crate::fixture::{
    AT, BRANCH, Fixture, changed, commit, counting, listing, read, refused, reported, shell, turn,
    write,
};

#[test]
fn a_candidate_is_one_commit_on_the_base() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    shell(
        &workspace.path,
        "echo two > src/main.txt; rm README; echo n > new; chmod +x tests/check.sh
         echo t > x.tmp; mkdir build; echo b > build/b; ln -sf nowhere link",
    );
    let candidate = commit(&repository, &workspace);
    assert_eq!(
        changed(&candidate),
        [
            "README Deleted",
            "link Added",
            "new Added",
            "src/main.txt Modified",
            "tests/check.sh Mode"
        ]
    );
    assert_eq!(candidate.refused, []);
    let id = candidate.commit.as_str();
    let about = fixture.git(&["show", "-s", "--format=%P|%an|%ae|%at|%cn|%ct|%B", id]);
    let base = fixture.base();
    let expected = format!(
        "{base}|Kapi Agent|agent@kapi.invalid|{AT}|Kapi Agent|{AT}|demo: turn 1\n\n\
         Kapi-Goal: 001-demo"
    );
    assert_eq!(about, expected);
    assert_eq!(fixture.git(&["rev-parse", "refs/kapi/001-demo/turn-1"]), id);
    assert_eq!(fixture.git(&["rev-parse", BRANCH]), base.as_str());
}

#[test]
fn repeating_gives_the_same_commit_whatever_became_of_the_cache() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    write(&workspace.path.join("new"), "n");
    let first = commit(&repository, &workspace);
    assert_eq!(commit(&repository, &workspace), first);
    let cache = fixture.repo().join(".git/worktrees/001-demo/kapi/index");
    write(&cache, "torn");
    assert_eq!(commit(&repository, &workspace), first);
    fs::remove_file(&cache).expect("remove");
    write(&cache.with_file_name("index.lock"), "");
    assert_eq!(commit(&repository, &workspace), first);
    // Ignoring a file that an earlier candidate held gives what a first candidate would.
    write(&workspace.path.join(".gitignore"), "build/\n*.tmp\nnew\n");
    let mut plan = turn(2);
    let warm = repository
        .commit_candidate(&workspace, &plan)
        .expect("candidate");
    fs::remove_file(&cache).expect("remove");
    plan.name = kapi_git::id::RefPart::parse("turn-3").expect("name");
    let cold = repository
        .commit_candidate(&workspace, &plan)
        .expect("candidate");
    assert_eq!(warm, cold);
    assert_eq!(changed(&cold), [".gitignore Modified"]);
}

#[test]
fn a_candidate_that_is_replaced_is_not_lost() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    write(&workspace.path.join("new"), "1");
    let first = commit(&repository, &workspace);
    write(&workspace.path.join("new"), "2");
    let second = commit(&repository, &workspace);
    assert_eq!(
        fixture.git(&["rev-parse", "refs/kapi/001-demo/turn-1"]),
        second.commit.as_str()
    );
    let kept = format!("refs/kapi/001-demo/replaced-{}", first.commit);
    assert_eq!(fixture.git(&["rev-parse", &kept]), first.commit.as_str());
}

#[test]
fn rescue_keeps_partial_work_and_only_work() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    let tree = repository.tree_of(&workspace.base).expect("tree");
    assert_eq!(
        repository
            .rescue(&workspace, &turn(9), &tree)
            .expect("rescue"),
        None
    );
    write(&workspace.path.join("half"), "done");
    let kept = repository
        .rescue(&workspace, &turn(9), &tree)
        .expect("rescue")
        .expect("work");
    repository
        .reset_workspace(&workspace, &workspace.base)
        .expect("reset");
    assert!(!workspace.path.join("half").exists());
    assert_eq!(fixture.git(&["show", &format!("{kept}:half")]), "done");
}

#[test]
fn files_and_directories_may_take_each_others_place() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    shell(
        &workspace.path,
        "rm -r src tests; echo f > src; ln -s src tests; rm README; mkdir README; echo r > README/r",
    );
    let candidate = commit(&repository, &workspace);
    assert_eq!(
        listing(&fixture, candidate.commit.as_str()),
        [
            "100644 .gitignore",
            "100644 README/r",
            "100644 src",
            "120000 tests"
        ]
    );
    assert_eq!(
        fixture.git(&["show", &format!("{}:tests", candidate.commit)]),
        "src"
    );
}

#[test]
fn line_endings_are_converted_as_the_repository_says() {
    let fixture = Fixture::new();
    write(
        &fixture.repo().join(".gitattributes"),
        "*.txt text eol=crlf\n*.bin -text\n",
    );
    fixture.commit("attributes");
    let (repository, workspace) = fixture.workspace();
    assert_eq!(read(&workspace.path.join("src/main.txt")), "one\r\n");
    shell(&workspace.path, "touch src/main.txt");
    assert_eq!(commit(&repository, &workspace).changed, []);
    write(&workspace.path.join("src/main.txt"), "two\r\n");
    write(&workspace.path.join("raw.bin"), "\r\n");
    let candidate = commit(&repository, &workspace);
    let show = |path: &str| {
        shell(
            &fixture.repo(),
            &format!("git show {}:{path} | od -c", candidate.commit),
        )
    };
    assert_eq!(show("src/main.txt"), "0000000   t   w   o  \\n\n0000004");
    assert_eq!(show("raw.bin"), "0000000  \\r  \\n\n0000002");
}

#[test]
fn five_thousand_files_start_no_more_processes_than_a_hundred() {
    let asked = |n_directories: u32| {
        let fixture = Fixture::new();
        shell(
            &fixture.repo(),
            &format!(
                "for d in $(seq {n_directories}); do mkdir -p d/$d; for f in $(seq 100); do \
                 echo $d $f > d/$d/$f; done; done"
            ),
        );
        fixture.commit("many");
        let (git, calls) = counting(&fixture);
        let repository = Repository::discover(&git, &fixture.repo()).expect("discover");
        let made = repository.create_workspace(&fixture.plan());
        let workspace = made.expect("workspace");
        write(&workspace.path.join("d/1/7"), "changed");
        let candidate = commit(&repository, &workspace);
        assert_eq!(changed(&candidate), ["d/1/7 Modified"]);
        reported(&calls)
    };
    assert_eq!(asked(50), asked(1));
}

#[test]
fn state_of_kapis_own_stays_as_it_is_in_the_base() {
    let fixture = Fixture::new();
    write(&fixture.repo().join(".ilchul/config.toml"), "base\n");
    write(&fixture.repo().join(".ilchul/gone"), "base\n");
    write(&fixture.repo().join("docs/.ilchul/mine"), "base\n");
    fixture.commit("state");
    for script in [
        "echo evil > .ilchul/config.toml; rm .ilchul/gone; echo e > .ilchul/new",
        "mkdir .ILCHUL .Ilchul; echo e > .ILCHUL/new; ln -s /etc .Ilchul/new",
        "rm -r .ilchul; ln -s src .ilchul",
        "rm -r .ilchul; echo file > .ilchul",
        "git init -q .ilchul; git init -q .IlchuL; echo e > .ilchul/e; echo e > .IlchuL/e",
    ] {
        let (repository, workspace) = fixture.workspace();
        shell(&workspace.path, script);
        let candidate = commit(&repository, &workspace);
        assert_eq!(changed(&candidate), [""; 0], "{script}");
        assert_eq!(
            candidate.tree,
            repository.tree_of(&fixture.base()).expect("tree")
        );
        assert!(
            refused(&candidate)
                .iter()
                .any(|found| found.ends_with(" KapiState")),
            "{script}: {:?}",
            candidate.refused
        );
        repository
            .reset_workspace(&workspace, &workspace.base)
            .expect("reset");
        shell(&workspace.path, "rm -rf .ilchul/.git");
    }
    // Only at the top, and only under that name.
    let (repository, workspace) = fixture.workspace();
    shell(
        &workspace.path,
        "echo x > docs/.ilchul/mine; echo x > .ilchul2; echo x >> .ilchul/config.toml; rm .ilchul/gone",
    );
    let candidate = commit(&repository, &workspace);
    assert_eq!(
        changed(&candidate),
        [".ilchul2 Added", "docs/.ilchul/mine Modified"]
    );
    assert_eq!(
        refused(&candidate),
        [".ilchul/config.toml KapiState", ".ilchul/gone KapiState"]
    );
    assert_eq!(candidate.refused[0].why.to_string(), "Kapi's own state");
}

#[test]
fn a_setuid_bit_does_not_leave_the_workspace() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    shell(&workspace.path, "echo s > suid; chmod 6755 suid");
    let candidate = commit(&repository, &workspace);
    assert!(listing(&fixture, candidate.commit.as_str()).contains(&"100755 suid".to_owned()));
    let mode = fs::metadata(workspace.path.join("suid"))
        .expect("mode")
        .permissions()
        .mode();
    assert_eq!(mode & 0o111, 0o111);
    assert_eq!(refused(&candidate), [""; 0]);
}

#[test]
fn a_plan_that_makes_no_commit_is_refused_before_anything_is_done() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    let mut plan = turn(1);
    plan.message = " \n".to_owned();
    let error = repository
        .commit_candidate(&workspace, &plan)
        .expect_err("message");
    assert!(matches!(error, CandidateError::Message), "{error}");
    let mut plan = turn(1);
    plan.author.name = "A <b>\nparent".to_owned();
    let error = repository
        .commit_candidate(&workspace, &plan)
        .expect_err("author");
    assert!(matches!(error, CandidateError::Author { .. }), "{error}");
    assert_eq!(
        fixture.git(&["for-each-ref", "--format=%(refname)", "refs/kapi"]),
        "refs/kapi/001-demo/base"
    );
}

#[test]
fn the_size_of_a_diff_counts_lines_and_files_whatever_they_are_called() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    let base = fixture.base();
    let none = repository.diff_count(&base, &base).expect("count");
    assert_eq!(none, DiffCount::default());
    shell(
        &workspace.path,
        "seq 10 > \"$(printf 'a\\tb\\nc')\"; printf '\\0\\1' > binary; rm README",
    );
    let removed = fixture.git(&["show", "HEAD:README"]).lines().count();
    let candidate = commit(&repository, &workspace);
    let count = repository
        .diff_count(&base, &candidate.commit)
        .expect("count");
    let expected = DiffCount {
        files: 3,
        added: 10,
        removed: removed as u64,
    };
    assert_eq!(count, expected);
}

#[test]
fn a_patch_is_cut_at_its_limit() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    shell(&workspace.path, "seq 200000 > big");
    let candidate = commit(&repository, &workspace);
    let base = fixture.base();
    let whole = repository
        .diff(&base, &candidate.commit, 16 << 20)
        .expect("diff");
    assert!(!whole.is_cut);
    assert!(whole.bytes.ends_with(b"+200000\n"));
    let part = repository
        .diff(&base, &candidate.commit, 1000)
        .expect("diff");
    assert!(part.is_cut);
    assert!(part.bytes.len() <= 1000 && whole.bytes.starts_with(&part.bytes));
}
