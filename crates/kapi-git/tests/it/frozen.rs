//! Frozen bases: each is what git checks out, whatever stack it is made of and whatever the person
//! does meanwhile.

use std::fs;
use std::path::PathBuf;

use kapi_git::id::{CommitId, RefPart};
use kapi_git::layer::commit::LayerPlan;
use kapi_git::layer::{Layer, Marks};
use kapi_git::reachable::frozen::{self, FrozenBase, FrozenPlan};

use crate::fixture::{Fixture, shell, turn, write};
use crate::layer_fixture::{mounted, open};
use crate::layer_random::Random;

/// Everything below the working directory: mode, size, target and name, and a sum of the contents.
const LISTING: &str = "find . -mindepth 1 -not -path './.git*' -printf '%M %s %l %P\\n' | grep -v '^d' | sort; find . -type d -not -path './.git*' | sort; find . -type f -not -path './.git*' | sort | xargs -d '\\n' sha256sum";

fn stores(fixture: &Fixture) -> PathBuf {
    fixture.root().join("stores")
}

#[track_caller]
fn base(fixture: &Fixture, commit: &CommitId) -> FrozenBase {
    let plan = FrozenPlan {
        stores: &stores(fixture),
        commit,
        wait_ms: 10_000,
    };
    fixture.open().frozen_base(&plan).expect("base")
}

/// Returns what an agent sees over a base.
fn seen(fixture: &Fixture, base: &FrozenBase) -> String {
    let layer = open(fixture);
    let seen = mounted(&layer, &base.lower, LISTING);
    layer.discard().expect("discard");
    seen
}

/// Returns what git checks out.
fn checked_out(fixture: &Fixture, commit: &CommitId) -> String {
    let at = fixture.root().join("peer");
    let text = at.display().to_string();
    fixture.git(&["worktree", "add", "-q", "--detach", &text, commit.as_str()]);
    let listed = shell(&at, LISTING);
    fixture.git(&["worktree", "remove", "--force", &text]);
    listed
}

#[track_caller]
fn check(fixture: &Fixture, commit: &CommitId) -> FrozenBase {
    let made = base(fixture, commit);
    assert_eq!(
        seen(fixture, &made),
        checked_out(fixture, commit),
        "{commit}"
    );
    made
}

/// Runs a script in the person's checkout, commits all and returns the commit.
fn next(fixture: &Fixture, text: &str) -> CommitId {
    shell(&fixture.repo(), text);
    fixture.commit("next");
    fixture.base()
}

#[test]
fn each_base_is_what_git_checks_out_and_holds_only_the_difference() {
    let fixture = Fixture::new();
    let first = check(&fixture, &fixture.base());
    assert_eq!((first.is_new, first.depth()), (true, 1));
    for (depth, change) in [
        (
            2,
            "rm -r src; mkdir -p deep/er; echo x > deep/er/x; chmod +x tests/check.sh",
        ),
        (
            3,
            "rm -r deep; echo file > deep; ln -s README link; mkdir 'a b'; echo y > 'a b/ü'",
        ),
        (
            4,
            "rm deep link; mkdir -p deep src; echo again > deep/er; echo new > src/new; ln -s deep link",
        ),
        (5, "rm -r 'a b' tests; echo '*.o' >> .gitignore"),
    ] {
        let commit = next(&fixture, change);
        let made = check(&fixture, &commit);
        assert_eq!((made.is_new, made.depth()), (true, depth), "{change}");
        let again = base(&fixture, &commit);
        assert!(!again.is_new);
        assert_eq!(again.lower, made.lower);
    }
    let commit = next(
        &fixture,
        "echo '*.sh eol=crlf' > .gitattributes; echo one > a.sh",
    );
    // Rules for every file: nothing of an earlier base is sure to be the same.
    assert_eq!(check(&fixture, &commit).depth(), 1);
}

#[test]
fn a_stack_never_gets_too_high_and_old_bases_go() {
    let fixture = Fixture::new();
    for n in 0..30 {
        let commit = next(
            &fixture,
            &format!("echo {n} > f{}; rm -f f{}", n % 7, (n + 3) % 7),
        );
        assert!(check(&fixture, &commit).depth() <= 8);
    }
    let repositories = fs::read_dir(stores(&fixture)).expect("list").flatten();
    let dirs = repositories.flat_map(|dir| fs::read_dir(dir.path()).expect("list").flatten());
    let n_left = dirs.filter(|dir| dir.path().join("files").is_dir()).count();
    assert!(n_left <= 12 + 8, "{n_left} bases are left");
}

#[test]
fn the_index_says_that_nothing_changed_without_a_file_being_read() {
    let fixture = Fixture::new();
    base(&fixture, &fixture.base());
    let commit = next(
        &fixture,
        "rm README; echo more >> src/main.txt; echo new > new",
    );
    let made = base(&fixture, &commit);
    assert_eq!(made.depth(), 2);
    let layer = open(&fixture);
    let git_dir = fixture.repo().join(".git");
    let ask = format!(
        "cp '{}' ../index; touch ../index; GIT_DIR='{}' GIT_WORK_TREE=. GIT_INDEX_FILE=../index \
         git -c safe.directory='*' -c core.checkStat=minimal -c core.trustctime=false \
         diff-files --name-only",
        made.index.display(),
        git_dir.display()
    );
    assert_eq!(mounted(&layer, &made.lower, &ask), "");
    assert_eq!(
        mounted(&layer, &made.lower, &format!("echo x >> new; {ask}")),
        "new"
    );
}

#[test]
fn what_the_person_does_meanwhile_is_neither_seen_nor_committed() {
    let fixture = Fixture::new();
    let commit = fixture.base();
    let made = base(&fixture, &commit);
    let layer = open(&fixture);
    let repository = fixture.open();
    let mut plan = fixture.plan();
    plan.goal = RefPart::parse("002-layer").expect("goal");
    plan.branch = "feat/layer".to_owned();
    let workspace = repository.claim_layer(&layer, &plan).expect("claim");
    shell(
        &fixture.repo(),
        "echo mine >> README; echo secret > .env; git checkout -q -b other; git rm -q src/main.txt; git -c user.name=p -c user.email=p@p commit -q -m other",
    );
    assert_eq!(
        mounted(&layer, &made.lower, "cat README; ls -A"),
        "hello\n.git\n.gitignore\nREADME\nsrc\ntests"
    );
    mounted(
        &layer,
        &made.lower,
        "sed -i s/hello/agent/ README; rm -r tests",
    );
    let candidate = turn(1);
    let found = repository
        .commit_layer(&LayerPlan {
            layer: &layer,
            lower: &made.lower,
            workspace: &workspace,
            candidate: &candidate,
            own: &[],
        })
        .expect("commit");
    let made = found.candidate.commit;
    assert_eq!(
        fixture.git(&["diff", "--name-status", commit.as_str(), made.as_str()]),
        "M\tREADME\nD\ttests/check.sh"
    );
    assert_eq!(fixture.git(&["show", &format!("{made}:README")]), "agent");
}

#[test]
fn what_a_killed_process_left_is_no_base_and_what_another_boot_made_is_made_again() {
    let fixture = Fixture::new();
    let commit = fixture.base();
    let made = base(&fixture, &commit);
    let dir = made.dir.clone();
    drop(made);
    let name = dir
        .file_name()
        .expect("name")
        .to_string_lossy()
        .into_owned();
    let half = dir.with_file_name(format!("making-{name}"));
    fs::rename(&dir, &half).expect("take the name away");
    fs::remove_file(half.join("files/README")).expect("remove");
    assert!(frozen::find(&dir).expect("find").is_none());
    let made = check(&fixture, &commit);
    assert!(made.is_new && !half.exists());
    drop(made);
    fs::remove_file(dir.join("files/README")).expect("remove");
    write(&dir.join("boot"), "another\n");
    assert!(frozen::find(&dir).expect("find").is_none());
    assert!(check(&fixture, &commit).is_new);
}

#[test]
fn a_base_that_a_sandbox_lies_over_stays() {
    let fixture = Fixture::new();
    let commit = fixture.base();
    let made = base(&fixture, &commit);
    let dir = made.dir.clone();
    let prune = || {
        fixture
            .open()
            .prune_stores(&stores(&fixture), i64::MAX, &[])
            .expect("prune")
    };
    prune();
    assert!(dir.is_dir());
    drop(made);
    prune();
    assert!(!dir.exists());
}

#[test]
fn bases_of_random_histories_are_what_git_checks_out() {
    for seed in 0..6_u64 {
        let fixture = Fixture::new();
        let mut random = Random(seed + 1);
        let mut commits = vec![fixture.base()];
        for _ in 0..8 {
            let from = random.below(commits.len());
            fixture.git(&["checkout", "-q", "--detach", commits[from].as_str()]);
            let mut lines = Vec::new();
            for _ in 0..=random.below(5) {
                let names = ["a", "b", "a/x", "b/y/z", "c/d", "c", "src", "src/main.txt"];
                let name = names[random.below(names.len())];
                lines.push(match random.below(4) {
                    0 => format!("rm -rf {name}"),
                    1 => format!("rm -rf {name}; mkdir -p $(dirname {name}) 2>/dev/null && ln -s to{} {name} || true", random.below(9)),
                    _ => format!("mkdir -p $(dirname {name}) 2>/dev/null && [ ! -d {name} ] && echo {} > {name} || true", random.below(1000)),
                });
            }
            lines.push(format!("echo {} > always", random.below(1 << 30)));
            let commit = next(&fixture, &lines.join("\n"));
            check(&fixture, &commit);
            commits.push(commit);
        }
    }
}

#[test]
fn a_layer_says_what_changed_over_a_stack() {
    let fixture = Fixture::new();
    base(&fixture, &fixture.base());
    let commit = next(&fixture, "rm README; mkdir d; echo d > d/e");
    let made = base(&fixture, &commit);
    let dir = fixture.root().join("kapi home/other");
    let layer = Layer::open(&dir, Marks::User, "test").expect("layer");
    mounted(
        &layer,
        &made.lower,
        "echo back > README; echo more >> src/main.txt; rm d/e; touch tests/check.sh",
    );
    let walk = kapi_git::layer::walk::walk(&layer, &made.lower).expect("walk");
    let changes = walk
        .changes
        .iter()
        .map(|c| format!("{} {:?}", c.path.display(), c.kind));
    let changes: Vec<String> = changes.collect();
    assert_eq!(
        changes,
        ["README Added", "d/e Deleted", "src/main.txt Modified"]
    );
    assert_eq!(fixture.git(&["status", "--porcelain"]), "");
}

#[test]
fn what_a_layer_touched_is_named_and_little_else() {
    let fixture = Fixture::new();
    let commit = next(
        &fixture,
        "mkdir -p deep/er other; echo 1 > deep/er/1; echo 2 > deep/2; echo 3 > other/3",
    );
    let made = base(&fixture, &commit);
    let layer = open(&fixture);
    let touched = || {
        let found = frozen::written::touched(&layer.upper(), &made.index).expect("answer");
        let found: Vec<String> = found
            .into_iter()
            .map(|path| String::from_utf8(path).expect("text"))
            .collect();
        found.join(" ")
    };
    // What was made and removed again at the top leaves nothing that could be seen.
    assert_eq!(touched(), ".gitignore README");
    mounted(&layer, &made.lower, "echo more >> deep/2");
    assert_eq!(touched(), ".gitignore README deep/2");
    mounted(
        &layer,
        &made.lower,
        "echo x > src/x; rm src/x; rm -r deep/er",
    );
    assert_eq!(touched(), ".gitignore README deep/2 deep/er/1 src/main.txt");
    mounted(
        &layer,
        &made.lower,
        "rm -r deep; mkdir deep; rm -r other; echo > other",
    );
    assert_eq!(
        touched(),
        ".gitignore README deep/2 deep/er/1 other/3 src/main.txt"
    );
    // With the note in it, git reads the index as before.
    let git_dir = fixture.repo().join(".git");
    let listed = shell(
        &fixture.repo(),
        &format!(
            "GIT_DIR='{}' GIT_INDEX_FILE='{}' git ls-files | wc -l",
            git_dir.display(),
            made.index.display()
        ),
    );
    assert_eq!(listed, "7");
}
