//! The integration branch moves by compare and swap, past no checkout that would not follow.

use std::path::{Path, PathBuf};

use kapi_core::integration_branch::{CheckoutRule, IntegrationBranch};
use kapi_git::advance::{Advance, AdvanceError, AdvancePlan};
use kapi_git::command::Git;
use kapi_git::id::CommitId;
use kapi_git::repository::Repository;
use kapi_sys::cancel::Cancel;

use crate::fixture::{Fixture, everything, git, git_binary, git_in, read, shell, write};

const REFUSE: CheckoutRule = CheckoutRule::Refuse;
const BRING: CheckoutRule = CheckoutRule::BringClean;

/// A repository on `main`, with `dev` at its first commit and another commit that goes on from there.
struct Bench {
    fixture: Fixture,
    from: CommitId,
    to: CommitId,
}

impl Bench {
    fn new() -> Self {
        let fixture = Fixture::new();
        let from = fixture.base();
        fixture.git(&["branch", "dev"]);
        fixture.git(&["switch", "-q", "-c", "work"]);
        let script = "echo two > src/main.txt; echo n > new.txt; git rm -q README; mkdir d; echo d > d/x.tmp; git add -f d";
        shell(&fixture.repo(), script);
        fixture.commit("work");
        let to = fixture.base();
        fixture.git(&["switch", "-q", "main"]);
        Self { fixture, from, to }
    }

    /// Checks `dev` out where the person works.
    fn checked_out() -> Self {
        let rig = Self::new();
        rig.fixture.git(&["switch", "-q", "dev"]);
        rig
    }

    fn advance(&self, checkout: CheckoutRule) -> Result<Advance, AdvanceError> {
        self.advance_by(&git(), checkout)
    }

    fn advance_by(&self, git: &Git, checkout: CheckoutRule) -> Result<Advance, AdvanceError> {
        let repository = Repository::discover(git, &self.fixture.repo())?;
        repository.advance_integration(&AdvancePlan {
            branch: IntegrationBranch::DEV,
            from: &self.from,
            to: &self.to,
            checkout,
        })
    }

    fn dev(&self) -> String {
        self.fixture.git(&["rev-parse", "dev"])
    }

    /// Checks that a refusal changes nothing at all, and says why.
    #[track_caller]
    fn check_refused(&self, checkout: CheckoutRule, says: &str) {
        let before = everything(&self.fixture.repo());
        let error = self.advance(checkout).expect_err("refused");
        assert!(error.to_string().contains(says), "{error}");
        assert!(!error.may_pass(), "{error:?}");
        assert_eq!(everything(&self.fixture.repo()), before, "{says}");
    }

    /// Checks that a checkout shows the commit, and nothing beside it.
    #[track_caller]
    fn check_brought(&self, path: &Path) {
        assert_eq!(self.dev(), self.to.as_str());
        assert_eq!(git_in(path, &["status", "--porcelain"]), "");
        assert_eq!(git_in(path, &["symbolic-ref", "HEAD"]), "refs/heads/dev");
        assert_eq!(read(&path.join("new.txt")), "n\n");
        assert_eq!(read(&path.join("src/main.txt")), "two\n");
        assert!(!path.join("README").exists());
    }
}

fn done(brought: Option<&Path>) -> Advance {
    Advance::Done {
        brought: brought.map(Path::to_path_buf),
    }
}

#[test]
fn the_branch_moves_and_nothing_else_does() {
    let rig = Bench::new();
    let others = |rig: &Bench| {
        let refs = rig.fixture.git(&["for-each-ref"]);
        let others = refs.lines().filter(|line| !line.ends_with("heads/dev"));
        others.map(str::to_owned).collect::<Vec<_>>()
    };
    let before = others(&rig);
    for _ in 0..2 {
        assert_eq!(rig.advance(REFUSE).expect("advance"), done(None));
        assert_eq!(rig.dev(), rig.to.as_str());
    }
    assert_eq!(others(&rig), before);
    assert_eq!(rig.fixture.git(&["status", "--porcelain"]), "");
    assert_eq!(rig.fixture.base(), rig.from);
}

#[test]
fn what_somebody_moved_or_deleted_stays_as_it_is() {
    let rig = Bench::checked_out();
    write(&rig.fixture.repo().join("other"), "x\n");
    rig.fixture.commit("somebody else's");
    let before = everything(&rig.fixture.repo());
    for rule in [REFUSE, BRING] {
        let found = Some(rig.fixture.base());
        assert_eq!(
            rig.advance(rule).expect("advance"),
            Advance::Moved { found }
        );
    }
    assert_eq!(everything(&rig.fixture.repo()), before);
    rig.fixture.git(&["switch", "-q", "main"]);
    rig.fixture.git(&["branch", "-q", "-D", "dev"]);
    let gone = Advance::Moved { found: None };
    assert_eq!(rig.advance(BRING).expect("advance"), gone);
}

#[test]
fn a_commit_that_does_not_go_on_from_the_branch_is_refused() {
    let mut rig = Bench::new();
    std::mem::swap(&mut rig.from, &mut rig.to);
    rig.fixture.git(&["branch", "-q", "-f", "dev", "work"]);
    rig.check_refused(BRING, "does not build on");
}

#[test]
fn a_checkout_of_the_branch_keeps_it_where_it_is() {
    let rig = Bench::checked_out();
    rig.check_refused(
        REFUSE,
        &format!("checked out in {}", rig.fixture.repo().display()),
    );
    rig.fixture.git(&["switch", "-q", "main"]);
    let linked = linked(&rig);
    rig.check_refused(REFUSE, &linked.display().to_string());
    rig.fixture
        .git(&["switch", "-q", "--ignore-other-worktrees", "dev"]);
    rig.check_refused(BRING, "checked out in");
    // One that is gone shows nothing.
    rig.fixture.git(&["switch", "-q", "main"]);
    shell(rig.fixture.root(), "rm -r linked");
    assert_eq!(rig.advance(REFUSE).expect("advance"), done(None));
}

fn linked(rig: &Bench) -> PathBuf {
    let path = rig.fixture.root().join("linked");
    let text = path.display().to_string();
    rig.fixture.git(&["worktree", "add", "-q", &text, "dev"]);
    path
}

#[test]
fn a_clean_checkout_is_brought_along() {
    let rig = Bench::checked_out();
    let repo = rig.fixture.repo();
    // A time that is not the index's is no change, and files that are in nobody's way stay.
    shell(
        &repo,
        "touch -d @1 src/main.txt; mkdir build; echo mine > build/out; echo mine > own",
    );
    for _ in 0..2 {
        assert_eq!(rig.advance(BRING).expect("advance"), done(Some(&repo)));
    }
    assert_eq!(shell(&repo, "cat build/out own; rm own"), "mine\nmine");
    rig.check_brought(&repo);
    let rig = Bench::new();
    let path = linked(&rig);
    assert_eq!(rig.advance(BRING).expect("advance"), done(Some(&path)));
    rig.check_brought(&path);
    assert_eq!(rig.fixture.git(&["status", "--porcelain"]), "");
}

#[test]
fn a_checkout_that_is_not_clean_is_not_touched() {
    for (script, says) in [
        ("echo mine > src/main.txt", "not committed are src/main.txt"),
        ("echo mine >> .gitignore", "not committed are .gitignore"),
        (
            "echo mine > README; git add README",
            "not committed are README",
        ),
        ("rm README", "not committed are README"),
        ("echo mine > new.txt", "in the way are new.txt"),
        // Ignored, and still nobody's to write over.
        ("mkdir d; echo mine > d/x.tmp", "in the way are d/x.tmp"),
        (
            "git rev-parse work > .git/MERGE_HEAD",
            "a merge is not finished",
        ),
        (
            "touch .git/index.lock",
            "another git command is not finished",
        ),
    ] {
        let rig = Bench::checked_out();
        shell(&rig.fixture.repo(), script);
        rig.check_refused(BRING, says);
        assert_eq!(rig.dev(), rig.from.as_str());
    }
}

#[test]
fn files_that_pass_through_filters_are_left_to_their_person() {
    let mut rig = Bench::new();
    let trap = rig.fixture.trap();
    rig.fixture.git(&["switch", "-q", "work"]);
    write(
        &rig.fixture.repo().join("d/.gitattributes"),
        "*.bin filter=trap\n",
    );
    write(&rig.fixture.repo().join("d/a.bin"), "x\n");
    rig.fixture.commit("filtered");
    rig.to = rig.fixture.base();
    rig.fixture.git(&["switch", "-q", "dev"]);
    rig.fixture.git(&["config", "filter.trap.smudge", &trap]);
    rig.check_refused(BRING, "attributes that name filters");
    rig.fixture.assert_not_sprung();
    rig.fixture.git(&["merge", "-q", "--ff-only", "work"]);
    rig.fixture.assert_sprung();
}

/// Returns a git that runs `script` before or after the chosen one of the commands that change
/// something, with the git in `$real`.
fn meddling(rig: &Bench, at: u32, (before, after): (&str, &str)) -> Git {
    let root = rig.fixture.root();
    let script = format!(
        "#!/bin/sh
         real='{}'
         case $2 in update-ref|read-tree|update-index)
           echo x >> '{count}'
           if [ $(wc -l < '{count}') -eq {at} ]; then
             {before}
             \"$real\" \"$@\" || exit
             {after}
             exit 0
           fi;;
         esac
         exec \"$real\" \"$@\"\n",
        git_binary().display(),
        count = root.join("count").display(),
    );
    write(&root.join("git"), &script);
    shell(root, "chmod +x git; rm -f count");
    Git::open(&root.join("git"), &Cancel::new()).expect("stand-in")
}

#[test]
fn whatever_is_cut_off_is_gone_on_with() {
    for kill in [("kill -9 $$", ""), ("", "kill -9 $$")] {
        let mut n_kills = 0;
        for at in 1..9 {
            let rig = Bench::checked_out();
            let killed = rig.advance_by(&meddling(&rig, at, kill), BRING);
            n_kills += u32::from(killed.is_err());
            let repo = rig.fixture.repo();
            let again = rig.advance(BRING).expect("again");
            assert_eq!(again, done(Some(&repo)), "{kill:?} {at}");
            rig.check_brought(&repo);
        }
        // The refresh of the index, the switch and the move; a move that was made counts as made.
        assert!((2..=4).contains(&n_kills), "{kill:?}: {n_kills}");
    }
}

#[test]
fn whoever_moves_the_branch_in_between_keeps_it_and_their_files() {
    let rig = Bench::checked_out();
    let repo = rig.fixture.repo();
    // Just before the branch moves, after the files were switched.
    let theirs = shell(&repo, "git commit-tree -p dev -m theirs dev^{tree}");
    let steal = format!("\"$real\" update-ref refs/heads/dev {theirs}");
    let git = meddling(&rig, 3, (&steal, ""));
    let found = Some(CommitId::parse(&theirs).expect("commit id"));
    let moved = rig.advance_by(&git, BRING).expect("advance");
    assert_eq!(moved, Advance::Moved { found });
    assert_eq!(rig.dev(), theirs);
    assert_eq!(rig.fixture.git(&["status", "--porcelain"]), "");
    assert_eq!(read(&repo.join("src/main.txt")), "one\n");
}
