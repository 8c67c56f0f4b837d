//! A layer gives the commit that a worktree gives, whatever is done in it.
//!
//! The same random script runs in both; commits, changes and refusals are compared.

use crate::fixture::{Fixture, commit, shell, write};
use crate::layer_fixture::LayerFixture;

/// How many scripts each test tries.
const SCRIPTS: u64 = 5;

/// How many steps one script has.
const STEPS: usize = 30;

const PATHS: [&str; 26] = [
    "README",
    "src",
    "src/main.txt",
    "src/lib.txt",
    "src/deep/er/file",
    "src/deep",
    "tests",
    "tests/check.sh",
    "docs/a b",
    "docs",
    "new",
    "new/dir/file",
    "-dash",
    "$'line\\nfeed/x'",
    "$'\\xff\\xfe'",
    "Case",
    "case",
    "build/out",
    "src/x.tmp",
    "src/build/out",
    ".gitignore",
    "src/.gitignore",
    ".gitattributes",
    "src/.gitattributes",
    "out",
    "src/out",
];

/// A small generator whose numbers depend on the seed alone.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % n as u64).expect("small")
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }
}

/// Names that need no second look, so that most commits are made without git.
const PLAIN_PATHS: [&str; 12] = [
    "README",
    "src",
    "src/main.txt",
    "src/deep/er/file",
    "src.d/file",
    "docs",
    "docs/a b",
    "new/dir/file",
    "src/build/out",
    "src/.gitignore",
    "out",
    "src/out",
];

fn script(seed: u64, paths: &[&str]) -> String {
    let mut random = Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let mut text = "set +e\nexec 2>/dev/null\nq() { mkdir -p -- \"$(dirname -- \"$1\")\"; }\np() { test -p \"$1\"; }\n".to_owned();
    for _ in 0..STEPS {
        let (one, other) = (random.pick(paths), random.pick(paths));
        let content = random.pick(&[
            "one\\n",
            "two\\n",
            "c\\r\\nd\\r\\n",
            "\\0bin\\n",
            "",
            "*.tmp\\nbuild/\\n",
            "*.txt\\n!main.txt\\n",
            "*.txt text eol=crlf\\n",
            "* text=auto\\n",
            "*.txt -text\\n",
            "/deep/\\n",
            "hello\\n",
            "exit 1\\n",
        ]);
        let step = match random.below(14) {
            0..=3 => format!("q {one}; p {one} || printf '{content}' > {one}"),
            4 => format!("p {one} || printf '{content}' >> {one}"),
            5 => format!("rm -rf -- {one}"),
            6 => format!("q {other}; mv -- {one} {other}"),
            7 => format!("q {other}; cp -r -- {one} {other}"),
            8 => format!("chmod +x -- {one}"),
            9 => format!("chmod -x -- {one}; touch -- {one}"),
            10 => format!(
                "q {one}; ln -s -- {} {one}",
                // Links that lead out lead nowhere: later steps follow them, and this runs as root.
                random.pick(&[
                    "README",
                    "/nowhere/at/all",
                    "../../../nowhere",
                    "../README",
                    "src",
                ])
            ),
            11 => {
                format!("rm -rf -- {one}; q {one}; mkdir -- {one}; printf '{content}' > {one}/file")
            }
            12 => format!("q {one}; mkfifo -- {one}"),
            _ => format!("touch -h -- {one}; find {one} -type f -exec touch -- {{}} +"),
        };
        text.push_str(&step);
        text.push('\n');
    }
    text.push_str("true\n");
    text
}

/// Runs one script both ways; returns how many changes and refusals there were.
fn check(seed: u64, paths: &[&str], format: &str) -> usize {
    let fixture = Fixture::with_format(format);
    write(&fixture.repo().join("src/lib.txt"), "a\r\nb\r\n");
    write(&fixture.repo().join("src/deep/er/file"), "deep\n");
    write(&fixture.repo().join("docs/a b"), "doc\n");
    if seed.is_multiple_of(2) {
        write(&fixture.repo().join(".gitattributes"), "*.sh text eol=lf\n");
    }
    shell(
        &fixture.repo(),
        "ln -s /nowhere/at/all out; ln -s ../../../nowhere src/out",
    );
    fixture.commit("more");
    let script = format!("exec timeout 20 bash -c {}", quoted(&script(seed, paths)));
    let (repository, workspace) = fixture.workspace();
    shell(&workspace.path, &script);
    let expected = commit(&repository, &workspace);
    let layer = LayerFixture::on(fixture);
    layer.inside(&script);
    let found = layer.commit().candidate;
    let base = layer.fixture.base();
    let patch = |id: &str| {
        layer
            .fixture
            .git(&["diff", "--stat", "--summary", base.as_str(), id])
    };
    assert_eq!(
        found.tree,
        expected.tree,
        "seed {seed}\n{script}\nlayer: {}\nworktree: {}",
        patch(found.commit.as_str()),
        patch(expected.commit.as_str())
    );
    assert_eq!(found.commit, expected.commit, "seed {seed}");
    assert_eq!(found.changed, expected.changed, "seed {seed}");
    assert_eq!(found.refused, expected.refused, "seed {seed}\n{script}");
    assert_eq!(layer.commit().candidate, found, "seed {seed}: again");
    // Git finds fault with rules that are no file, in a worktree's commit too.
    if !paths.contains(&".gitattributes") {
        layer.fixture.git(&["fsck", "--strict", "--no-dangling"]);
    }
    found.changed.len() + found.refused.len()
}

fn check_many(seeds: impl Iterator<Item = u64>, paths: &[&str], format: &str) {
    let found: usize = seeds.map(|seed| check(seed, paths, format)).sum();
    let expected = usize::try_from(SCRIPTS).expect("small") * 3;
    assert!(
        found > expected,
        "the scripts of this test change next to nothing: {found}"
    );
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[test]
fn a_layer_gives_the_commit_of_a_worktree() {
    check_many(1..=SCRIPTS, &PATHS, "sha1");
}

#[test]
fn a_layer_gives_the_commit_of_a_worktree_of_another_hash_too() {
    check_many(1001..=1000 + SCRIPTS, &PATHS, "sha256");
}

/// A file was only touched, under new rules by which git stores other line endings.
#[test]
fn a_touched_file_is_stored_by_the_rules_of_the_moment() {
    check(3013, &PATHS, "sha1");
}

#[test]
fn a_commit_made_without_git_is_the_commit_of_a_worktree() {
    check_many((1..=2 * SCRIPTS).map(|n| 2 * n + 1), &PLAIN_PATHS, "sha1");
    check_many((1..=SCRIPTS).map(|n| 2 * n + 1), &PLAIN_PATHS, "sha256");
}
