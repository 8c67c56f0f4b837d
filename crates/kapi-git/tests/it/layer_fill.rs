//! What an agent sees in a layer that was filled: one exact commit over a checkout of another.

use std::fs;
use std::path::PathBuf;

use kapi_git::id::CommitId;
use kapi_git::layer::{Layer, Marks};

use crate::fixture::{Fixture, changed, read, shell, write};
use crate::layer_fixture::LayerFixture;

/// Returns the files that the agent sees, with their content, but git's.
fn seen(layer: &LayerFixture) -> String {
    layer.inside("find . -path ./.git -prune -o ! -type d -print | LC_ALL=C sort | while read -r f; do
        if [ -L \"$f\" ]; then echo \"$f -> $(readlink \"$f\")\"; else echo \"$f $(tr '\\n' ' ' < \"$f\")\"; fi; done")
}

#[test]
fn changes_of_the_persons_are_kept_from_sight() {
    let fixture = Fixture::new();
    write(&fixture.repo().join("keep"), "k\n");
    fixture.commit("keep");
    write(&fixture.repo().join("README"), "person\n");
    write(&fixture.repo().join("mine/deep/file"), "person\n");
    write(&fixture.repo().join("notes"), "person\n");
    write(&fixture.repo().join("src/notes"), "person\n");
    fs::remove_file(fixture.repo().join("keep")).expect("remove");
    shell(&fixture.repo(), "rm -r tests; echo file > tests");
    let mut layer = LayerFixture::on(fixture);
    let names = [
        "README",
        "mine/",
        "notes",
        "src/notes",
        "keep",
        "tests",
        "tests/check.sh",
    ];
    layer.masks = names.map(PathBuf::from).to_vec();
    let base = layer.workspace.base.clone();
    layer.fill(&base);
    assert_eq!(
        seen(&layer),
        "./.gitignore build/ *.tmp \n./README hello \n./keep k \n./src/main.txt one \n./tests/check.sh exit 1"
    );
    assert_eq!(
        layer.inside("ls -A | tr '\\n' ' '"),
        ".git .gitignore README keep src tests"
    );
    assert_eq!(changed(&layer.commit().candidate), [""; 0]);
    // The agent may change all of it, and nothing of the person's is in the commit.
    layer.inside("echo agent >> README; echo agent > notes; rm keep; mkdir mine; echo a > mine/a");
    let made = layer.commit().candidate;
    assert_eq!(
        changed(&made),
        [
            "README Modified",
            "keep Deleted",
            "mine/a Added",
            "notes Added"
        ]
    );
    assert_eq!(
        layer
            .fixture
            .git(&["show", &format!("{}:README", made.commit)]),
        "hello\nagent"
    );
    assert_eq!(read(&layer.lower().join("README")), "person\n");
}

#[test]
fn going_back_shows_exactly_what_was_committed() {
    let fixture = Fixture::new();
    write(&fixture.repo().join("lib/a"), "a\n");
    write(&fixture.repo().join("lib/deep/b"), "b\n");
    write(&fixture.repo().join("run.sh"), "run\n");
    fixture.commit("lib");
    let mut layer = LayerFixture::on(fixture);
    layer.inside("rm -r lib; echo two > src/main.txt; chmod +x run.sh; ln -s src link; rm README; mkdir README; echo r > README/r");
    let first = layer.commit().candidate.commit;
    let before = seen(&layer);
    layer.inside("echo junk > junk; rm -rf src; echo x > src; git init -q nested; mkfifo pipe; chmod 0 README");
    layer.already = Some(first.clone());
    layer.fill(&first);
    assert_eq!(seen(&layer), before);
    assert_eq!(
        layer.inside("ls -A; test -x run.sh"),
        ".git\n.gitignore\nREADME\nlink\nrun.sh\nsrc\ntests"
    );
    assert_eq!(layer.commit().candidate.commit, first);
    // Work goes on from there.
    layer.inside("echo three >> src/main.txt");
    let second = layer.commit().candidate;
    assert_eq!(
        layer
            .fixture
            .git(&["show", &format!("{}:src/main.txt", second.commit)]),
        "two\nthree"
    );
    let base = layer.workspace.base.clone();
    layer.fill(&base);
    assert_eq!(changed(&layer.commit().candidate), [""; 0]);
    assert_eq!(fs::read_dir(layer.layer.upper()).expect("list").count(), 0);
}

#[test]
fn files_are_written_as_a_checkout_would_write_them() {
    let fixture = Fixture::new();
    write(
        &fixture.repo().join("sub/.gitattributes"),
        "*.txt text eol=crlf\n",
    );
    write(&fixture.repo().join("sub/a.txt"), "a\n");
    fixture.commit("attributes");
    let layer = LayerFixture::on(fixture);
    layer.inside("printf 'b\\r\\n' > sub/a.txt");
    let made = layer.commit().candidate;
    layer.fill(&made.commit);
    assert_eq!(layer.inside("od -An -c sub/a.txt"), "   b  \\r  \\n");
    assert_eq!(layer.commit().candidate, made);
}

#[test]
fn what_git_ignores_stays() {
    let fixture = Fixture::new();
    write(&fixture.repo().join("build/below"), "b\n");
    write(&fixture.repo().join("src/below.tmp"), "b\n");
    let layer = LayerFixture::on(fixture);
    layer.inside(
        "echo o > build/out; mkfifo build/pipe; rm src/below.tmp; echo t > src/t.tmp; echo junk > junk
         mkdir -p venv/lib; echo '*' > venv/.gitignore; echo l > venv/lib/l; echo junk > src/junk
         rm README; mkdir README; echo t > README/t.tmp; mkdir new; echo n > new/n; echo t > new/t.tmp",
    );
    let base = layer.workspace.base.clone();
    for _ in 0..2 {
        layer.fill(&base);
        assert_eq!(
            seen(&layer),
            "./.gitignore build/ *.tmp \n./README hello \n./build/below b \n./build/out o \n\
             ./new/t.tmp t \n./src/main.txt one \n./src/t.tmp t \n./tests/check.sh exit 1 \n\
             ./venv/.gitignore * \n./venv/lib/l l"
        );
    }
    let made = layer.commit().candidate;
    assert_eq!((changed(&made).len(), made.refused.len()), (0, 0));
}

#[test]
fn a_fill_that_was_cut_short_is_finished() {
    let layer = LayerFixture::new();
    layer.inside("echo n > new");
    let made: CommitId = layer.commit().candidate.commit;
    let dir = layer.fixture.root().join("kapi home/sandboxes/002-layer");
    // As a crash leaves it between the two renames.
    shell(&dir, "mv upper old; mkdir fresh; echo f > fresh/f");
    drop(layer.layer);
    let layer = Layer::open(&dir, Marks::User, "test").expect("open");
    assert_eq!(read(&layer.upper().join("f")), "f\n");
    assert!(!made.as_str().is_empty());
}
