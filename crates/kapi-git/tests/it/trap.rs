//! Pipes and devices where git opens whatever it finds: it would wait for ever.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use kapi_git::candidate::Candidate;
use kapi_git::command::Git;
use kapi_git::repository::Repository;
use kapi_sys::cancel::Cancel;

use crate::fixture::{Fixture, changed, commit, git_binary, refused, shell, write};
use crate::layer_fixture::LayerFixture;

/// How long a git may take that waits for nobody.
const PATIENCE: Duration = Duration::from_secs(60);

/// Leaves `script`'s work in a workspace and commits it; gives up, and fails, when git hangs.
#[track_caller]
fn committed(fixture: &Fixture, script: &str) -> Candidate {
    let (_, workspace) = fixture.workspace();
    shell(&workspace.path, script);
    let cancel = Cancel::new();
    let git = Git::open(&git_binary(), &cancel).expect("git");
    let repository = Repository::discover(&git, &fixture.repo()).expect("discover");
    let (done, wait) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            if wait.recv_timeout(PATIENCE).is_err() {
                cancel.raise();
            }
        });
        let made = commit(&repository, &workspace);
        let base = &workspace.base;
        repository.reset_workspace(&workspace, base).expect("reset");
        assert_eq!(shell(&workspace.path, "git status --porcelain"), "");
        done.send(()).expect("watched");
        made
    })
}

#[test]
fn pipes_in_the_place_of_rules_are_removed_before_git_waits_for_them() {
    let script = "rm .gitignore; mkdir -p new/deep
        mkfifo .gitignore .gitattributes .gitmodules src/.gitignore new/deep/.gitattributes pipe
        python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"tests/.gitignore\")'
        echo x > new/deep/x; echo t > x.tmp";
    let fixture = Fixture::new();
    let made = committed(&fixture, script);
    assert_eq!(
        changed(&made),
        [".gitignore Deleted", "new/deep/x Added", "x.tmp Added"]
    );
    assert_eq!(
        refused(&made),
        [
            ".gitattributes SpecialFile",
            ".gitignore SpecialFile",
            ".gitmodules SpecialFile",
            "new/deep/.gitattributes SpecialFile",
            "pipe SpecialFile",
            "src/.gitignore SpecialFile",
            "tests/.gitignore SpecialFile",
        ]
    );
    let layer = LayerFixture::on(fixture);
    layer.inside(script);
    assert_eq!(layer.commit().candidate.tree, made.tree);
}

#[test]
fn repositories_of_an_agents_making_do_not_make_git_wait() {
    let fixture = Fixture::new();
    let outside = fixture.root().join("outside");
    write(&outside.join("objects/x"), "");
    shell(&outside, "mkdir refs; mkfifo HEAD");
    let outside = outside.display();
    let made = committed(
        &fixture,
        &format!(
            "export HOME=/nonexistent; mkfifo pipe
             mkdir -p a/.git/objects a/.git/refs; mkfifo a/.git/HEAD; echo a > a/a
             git init -q b; ln -s ../../pipe b/.git/commondir; echo b > b/b
             mkdir c; echo 'gitdir: {outside}' > c/.git; echo c > c/c
             mkdir d; ln -s '{outside}' d/.git; echo d > d/d
             mkdir e; mkfifo e/.git; echo e > e/e; mkdir f; ln -s /dev/zero f/.git; echo f > f/f
             rm README; git init -q README; rm README/.git/config; mkfifo README/.git/config README/.git/packed-refs
             ln -sf /dev/zero README/.git/refs/heads/main"
        ),
    );
    assert!(
        changed(&made).contains(&"README Deleted".to_owned()),
        "{:?}",
        changed(&made)
    );
    assert!(
        refused(&made).contains(&"pipe SpecialFile".to_owned()),
        "{:?}",
        refused(&made)
    );
}
