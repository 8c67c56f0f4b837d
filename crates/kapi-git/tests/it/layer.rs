//! What of a layer becomes a commit, and what never does.

use std::fs;

use kapi_git::layer::error::LayerCommitError;
use kapi_git::layer::walk::WalkNoteKind;
use kapi_git::layer::{Layer, LayerError, Marks};

use crate::fixture::{Fixture, changed, commit, listing, read, refused, shell, write};
use crate::layer_fixture::LayerFixture;

#[test]
fn a_layer_becomes_one_commit_on_the_base() {
    let layer = LayerFixture::new();
    layer.inside(
        "echo two > src/main.txt; rm README; echo n > new; chmod +x tests/check.sh
         echo t > x.tmp; mkdir build; echo b > build/b; ln -sf nowhere link
         mkdir empty; touch src/main.txt; cat src/main.txt > /dev/null",
    );
    let made = layer.commit();
    assert_eq!(
        changed(&made.candidate),
        [
            "README Deleted",
            "link Added",
            "new Added",
            "src/main.txt Modified",
            "tests/check.sh Mode"
        ]
    );
    assert_eq!(made.candidate.refused, []);
    let git = |args: &[&str]| layer.fixture.git(args);
    let id = made.candidate.commit.as_str();
    assert_eq!(git(&["rev-parse", "refs/kapi/002-layer/turn-1"]), id);
    assert_eq!(
        git(&["rev-parse", "feat/layer"]),
        layer.fixture.base().as_str()
    );
    assert_eq!(
        git(&["show", "-s", "--format=%P|%an|%ct", id]),
        format!("{}|Kapi Agent|{}", layer.fixture.base(), crate::fixture::AT)
    );
    // The person's checkout and index are as they were, and the branch can be published.
    assert_eq!(git(&["status", "--porcelain"]), "");
    layer
        .repository
        .publish(&layer.workspace, &made.candidate.commit)
        .expect("publish");
    assert_eq!(git(&["rev-parse", "feat/layer"]), id);
    assert!(!layer.workspace.path.exists());
}

#[test]
fn repeating_gives_the_same_commit_and_a_replaced_one_is_kept() {
    let layer = LayerFixture::new();
    layer.inside("echo 1 > new");
    let first = layer.commit();
    assert_eq!(layer.commit(), first);
    layer.inside("echo 2 > new");
    let second = layer.commit();
    assert_ne!(second.candidate.commit, first.candidate.commit);
    let kept = format!("refs/kapi/002-layer/replaced-{}", first.candidate.commit);
    assert_eq!(
        layer.fixture.git(&["rev-parse", &kept]),
        first.candidate.commit.as_str()
    );
}

#[test]
fn a_copy_without_a_change_is_no_change() {
    let layer = LayerFixture::new();
    layer.inside(
        "touch README src/main.txt; chmod 600 README; git status > /dev/null; ls -R > /dev/null",
    );
    assert!(layer.layer.upper().join("README").exists());
    let made = layer.commit();
    assert_eq!(changed(&made.candidate), [""; 0]);
    assert_eq!(made.candidate.refused, []);
}

#[test]
fn directories_move_vanish_and_are_made_anew() {
    let fixture = Fixture::new();
    for name in ["a", "b/c", "b/d"] {
        write(&fixture.repo().join("lib").join(name), name);
    }
    fixture.commit("lib");
    let layer = LayerFixture::on(fixture);
    layer.inside("mv lib other; mkdir lib; echo new > lib/a; rm -r src; echo f > src; rm README; mkdir README; echo r > README/r");
    let made = layer.commit();
    assert_eq!(
        listing(&layer.fixture, made.candidate.commit.as_str()),
        [
            "100644 .gitignore",
            "100644 README/r",
            "100644 lib/a",
            "100644 other/a",
            "100644 other/b/c",
            "100644 other/b/d",
            "100644 src",
            "100644 tests/check.sh"
        ]
    );
}

#[test]
fn line_endings_of_the_checkout_are_not_changes_of_the_persons() {
    let fixture = Fixture::new();
    write(
        &fixture.repo().join(".gitattributes"),
        "*.txt text eol=crlf\n",
    );
    fixture.commit("attributes");
    shell(
        &fixture.repo(),
        "rm src/main.txt; git checkout -q src/main.txt",
    );
    assert_eq!(read(&fixture.repo().join("src/main.txt")), "one\r\n");
    let layer = LayerFixture::on(fixture);
    layer.inside(
        "printf 'two\\r\\n' > src/main.txt; printf 'n\\r\\n' > new.txt; printf 'b\\r\\n' > raw.bin",
    );
    let made = layer.commit();
    let show = |path: &str| {
        let id = &made.candidate.commit;
        shell(
            &layer.fixture.repo(),
            &format!("git show {id}:{path} | od -An -c"),
        )
    };
    assert_eq!(show("src/main.txt"), "   t   w   o  \\n");
    assert_eq!(show("new.txt"), "   n  \\n");
    assert_eq!(show("raw.bin"), "   b  \\r  \\n");
}

#[test]
fn filters_never_run_and_content_for_lfs_is_left_out() {
    let fixture = Fixture::new();
    let trap = fixture.trap();
    write(
        &fixture.repo().join(".gitattributes"),
        "*.bin filter=lfs diff=lfs -text\n",
    );
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n";
    write(&fixture.repo().join("old.bin"), pointer);
    fixture.commit("lfs");
    for key in ["clean", "smudge", "process"] {
        fixture.git(&["config", &format!("filter.lfs.{key}"), &trap]);
    }
    fixture.git(&["config", "filter.lfs.required", "true"]);
    fixture.git(&["config", "core.fsmonitor", &trap]);
    let (repository, workspace) = fixture.workspace();
    let script = "touch -d @1000000000 old.bin; echo content > new.bin; : > empty.bin; echo '*.md filter=other' >> .gitattributes
        echo x > README; echo x > a.md; printf 'version https://git-lfs.github.com/spec/v1\\noid sha256:%064d\\nsize 1\\n' 7 > new2.bin";
    shell(&workspace.path, script);
    let expected = commit(&repository, &workspace);
    let layer = LayerFixture::on(fixture);
    layer.inside(script);
    let made = layer.commit();
    assert_eq!(made.candidate, expected);
    assert_eq!(refused(&expected), ["new.bin LfsContent"]);
    assert_eq!(
        changed(&expected),
        [
            ".gitattributes Modified",
            "README Modified",
            "a.md Added",
            "empty.bin Added",
            "new2.bin Added"
        ]
    );
    layer.fixture.assert_not_sprung();
    shell(
        &layer.fixture.repo(),
        "touch README; git status > /dev/null 2>&1 || true",
    );
    layer.fixture.assert_sprung();
}

#[test]
fn rules_of_the_base_of_the_agent_and_of_dependencies_are_obeyed() {
    let fixture = Fixture::new();
    write(&fixture.repo().join("deps/.gitignore"), "*\n");
    write(&fixture.repo().join("deps/lib/x"), "x");
    write(&fixture.repo().join("kept.tmp"), "tracked");
    fixture.git(&["add", "-f", "kept.tmp"]);
    fixture.commit("kept");
    write(&fixture.repo().join(".git/info/exclude"), "secret\n");
    let layer = LayerFixture::on(fixture);
    layer.inside(
        "echo y > deps/lib/x; echo y > deps/new; echo t > kept.tmp; echo s > secret; echo b > b.tmp
         mkdir -p fresh/out/deep; echo '/out' > fresh/.gitignore; echo o > fresh/out/deep/o; echo k > fresh/k
         echo n > src/.gitignore; echo '!z.tmp' >> src/.gitignore; echo z > src/z.tmp; echo n > src/n",
    );
    let made = layer.commit();
    assert_eq!(
        changed(&made.candidate),
        [
            "fresh/.gitignore Added",
            "fresh/k Added",
            "kept.tmp Modified",
            "src/.gitignore Added",
            "src/z.tmp Added"
        ]
    );
    assert_eq!(made.candidate.refused, []);
}

#[test]
fn submodules_and_nested_repositories_stay_outside() {
    let fixture = Fixture::new();
    let link = format!("160000,{},lib/sub", fixture.base());
    fixture.git(&["update-index", "--add", "--cacheinfo", &link]);
    fixture.git(&["commit", "-q", "-m", "submodule"]);
    let (repository, workspace) = fixture.workspace();
    let script = "export HOME=/nonexistent
         mkdir -p lib; git init -q lib/sub; echo work > lib/sub/file
         git init -q full; echo x > full/x; mkdir -p odd/.git; echo y > odd/y; git init -q src; echo z > src/z
         rm README; git init -q README; echo r > README/r; git init -q build; echo o > build/o";
    shell(&workspace.path, script);
    let expected = commit(&repository, &workspace);
    let layer = LayerFixture::on(fixture);
    layer.inside(script);
    let made = layer.commit().candidate;
    assert_eq!(made.tree, expected.tree);
    assert_eq!(
        changed(&made),
        ["README Deleted", "odd/y Added", "src/z Added"]
    );
    let mut found = refused(&made);
    // A worktree has the git data of a submodule taken away before it is named, and names a
    // repository in the place of a file only when that repository has a commit.
    found.retain(|line| line != "lib/sub/.git GitDirectory" && line != "README NestedRepository");
    let mut wanted = refused(&expected);
    wanted.retain(|line| line != "lib/sub/.git GitDirectory");
    assert_eq!(found, wanted);
    // Deleting the directory of a submodule does not delete the submodule.
    layer.inside("rm -rf lib full odd src/.git README/.git");
    let made = layer.commit().candidate;
    assert!(listing(&layer.fixture, made.commit.as_str()).contains(&"160000 lib/sub".to_owned()));
}

#[test]
fn state_of_kapis_own_stays_as_it_is_in_the_base() {
    for script in [
        "echo evil > .ilchul/config.toml; echo e > .ilchul/new",
        "rm -r .ilchul",
        "rm -r .ilchul; ln -s src .ilchul",
        "rm -r .ilchul; mkdir .ilchul; echo e > .ILCHUL",
    ] {
        let fixture = Fixture::new();
        write(&fixture.repo().join(".ilchul/config.toml"), "base\n");
        fixture.commit("state");
        let layer = LayerFixture::on(fixture);
        layer.inside(script);
        let made = layer.commit().candidate;
        assert_eq!(changed(&made), [""; 0], "{script}");
        let lines = refused(&made);
        assert!(
            lines.iter().any(|line| line.ends_with(" KapiState")),
            "{script}: {lines:?}"
        );
    }
}

#[test]
fn what_deserves_a_look_is_noted() {
    let layer = LayerFixture::new();
    layer.inside(
        "echo s > suid; chmod 6755 suid; ln -s /etc/passwd abs; ln -s ../x src/in
         echo 1 > Name; echo 2 > name; ln suid second",
    );
    let made = layer.commit();
    let notes: Vec<(String, WalkNoteKind)> = made
        .notes
        .iter()
        .map(|note| (note.path.display().to_string(), note.about))
        .collect();
    let expected = [
        ("Name", WalkNoteKind::CaseCollision),
        ("name", WalkNoteKind::CaseCollision),
        ("second", WalkNoteKind::SetId),
        ("suid", WalkNoteKind::SetId),
    ];
    assert_eq!(
        notes,
        expected.map(|(path, about)| (path.to_owned(), about))
    );
    let lines = listing(&layer.fixture, made.candidate.commit.as_str());
    assert!(
        lines.contains(&"100755 second".to_owned()) && lines.contains(&"100755 suid".to_owned())
    );
    assert_eq!(refused(&made.candidate), ["abs EscapingLink"]);
}

#[test]
fn one_layer_is_used_once_at_a_time_and_leaves_nothing() {
    let layer = LayerFixture::new();
    let dir = layer.fixture.root().join("kapi home/sandboxes/002-layer");
    let error = Layer::open(&dir, Marks::User, "second").expect_err("in use");
    assert!(matches!(error, LayerError::Lock(_)), "{error}");
    layer.inside("echo x > new");
    assert!(dir.join("work/work").exists());
    // As an ordinary user could not look into it.
    shell(&dir, "chmod 0 work/work");
    let work = layer.layer.fresh_work().expect("work");
    assert_eq!(fs::read_dir(&work).expect("list").count(), 0);
    shell(&layer.layer.upper(), "mkdir -p a/b; chmod 0 a/b a");
    fs::remove_dir(dir.join("mounted")).expect("remove");
    layer.layer.discard().expect("discard");
    assert!(!dir.exists());
}

#[test]
fn a_layer_that_is_gone_is_an_error_and_no_empty_commit() {
    let layer = LayerFixture::new();
    layer.inside("rm README");
    shell(&layer.layer.upper(), "rm -r \"$PWD\"");
    let error = layer.try_commit().expect_err("gone");
    assert!(
        matches!(error, LayerCommitError::Layer(LayerError::Gone { .. })),
        "{error}"
    );
}
