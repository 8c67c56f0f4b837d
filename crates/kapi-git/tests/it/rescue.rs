//! What a clean-up learns and what it cannot remove.

use std::collections::BTreeSet;
use std::fs;

use kapi_git::id::{CommitId, RefPart};
use kapi_git::repository::Repository;
use kapi_git::rescue::{KapiRef, RescueError, RescueName, RescuedCommit, Signature};
use kapi_git::workspace::{WorkspaceOrigin, WorkspacePlan};

use crate::fixture::{
    AT, BRANCH, Fixture, author, commit, counting, everything, reported, shell, write,
};

fn part(text: &str) -> RefPart {
    RefPart::parse(text).expect("a part")
}

/// Runs `act` with the name under which this test rescues.
fn named<T>(act: impl FnOnce(RescueName<'_>) -> T) -> T {
    let (name, date) = (part("001-demo"), part("2026-08-23"));
    act(RescueName {
        name: &name,
        date: &date,
    })
}

#[test]
fn a_commit_is_kept_and_the_line_brings_it_back() {
    let fixture = Fixture::new();
    let repository = fixture.open();
    let base = fixture.base();
    let kept = named(|name| repository.keep_commit(name, &base)).expect("kept");
    assert_eq!(
        kept,
        RescuedCommit {
            commit: base.clone(),
            ref_name: "refs/kapi/rescue/001-demo-2026-08-23".to_owned(),
            restore_line: "git branch 001-demo refs/kapi/rescue/001-demo-2026-08-23".to_owned(),
        }
    );
    assert_eq!(
        named(|name| repository.keep_commit(name, &base)).expect("kept"),
        kept
    );
    write(&fixture.repo().join("new"), "n");
    fixture.commit("second");
    let second = fixture.base();
    let other = named(|name| repository.keep_commit(name, &second)).expect("kept");
    assert_eq!(other.ref_name, format!("{}-2", kept.ref_name));
    assert_eq!(
        named(|name| repository.keep_commit(name, &second)).expect("kept"),
        other
    );
    fixture.git(&["reset", "-q", "--hard", "HEAD~1"]);
    fixture.git(&["reflog", "expire", "--expire=now", "--all"]);
    fixture.git(&["gc", "-q", "--prune=now"]);
    shell(&fixture.repo(), &other.restore_line);
    assert_eq!(fixture.git(&["rev-parse", "001-demo"]), second.as_str());
}

#[test]
fn files_that_no_commit_has_are_kept_as_one() {
    let fixture = Fixture::new();
    let trap = fixture.trap();
    let (repository, workspace) = fixture.workspace();
    let base = workspace.base.clone();
    let author = author();
    let by = Signature {
        author: &author,
        at_unix_seconds: AT,
    };
    let keep = |known: &CommitId| {
        named(|name| repository.keep_files(&workspace, known, name, &by)).expect("kept")
    };
    assert!(!repository.has_unsaved(&workspace, &base).expect("files"));
    assert_eq!(keep(&base), None);
    shell(
        &workspace.path,
        &format!(
            "rm .git; git init -q; git config core.fsmonitor '{trap}'; echo work > new; mkdir build; echo o > build/o"
        ),
    );
    assert!(repository.has_unsaved(&workspace, &base).expect("files"));
    let kept = keep(&base).expect("something");
    fixture.assert_not_sprung();
    assert_eq!(
        fixture.git(&["show", &format!("{}:new", kept.ref_name)]),
        "work"
    );
    assert_eq!(
        fixture.git(&["rev-parse", &format!("{}^", kept.commit)]),
        base.as_str()
    );
    // Kept is kept: the same files are nothing new.
    assert_eq!(keep(&kept.commit), None);
    assert_eq!(keep(&base), Some(kept));
}

#[test]
fn a_workspace_that_nobody_touched_is_not_read_by_git() {
    let fixture = Fixture::new();
    let (git, path) = counting(&fixture);
    let open = || Repository::discover(&git, &fixture.repo()).expect("discover");
    let repository = open();
    let workspace = repository
        .create_workspace(&fixture.plan())
        .expect("workspace");
    // Written some time ago: what is written in the instant of a commit is compared once more.
    let work = "echo work > new; touch -d '1 hour ago' new";
    shell(&workspace.path, work);
    let base = workspace.base.clone();
    let candidate = commit(&repository, &workspace).commit;
    drop(reported(&path));
    let repository = open();
    let both = BTreeSet::from([base.clone(), candidate.clone()]);
    repository.learn_trees(&both).expect("trees");
    assert_eq!(reported(&path), ["cat-file"]);
    let has_unsaved = |known: &CommitId| {
        let found = repository.has_unsaved(&workspace, known);
        found.expect("files")
    };
    assert!(!has_unsaved(&candidate));
    assert!(has_unsaved(&base));
    repository.learn_trees(&both).expect("trees");
    assert_eq!(reported(&path), Vec::<String>::new());
    // What builds leave is told from work by git alone.
    shell(&workspace.path, "mkdir build; echo o > build/o");
    assert!(!has_unsaved(&candidate));
    assert_eq!(reported(&path), ["check-ignore"]);
}

#[test]
fn whatever_happens_in_a_workspace_is_seen() {
    for (script, is_unsaved) in [
        ("touch README", false),
        ("cp README copy; rm README; mv copy README", false),
        ("mkdir build; echo x > build/y", false),
        ("echo x > a.tmp", false),
        ("mkfifo pipe", false),
        ("mkdir build; mkfifo build/.gitignore", false),
        ("mkdir .ilchul; echo x > .ilchul/y", false),
        ("git init -q nested; echo x > nested/x", false),
        ("rm .git; echo x > .git", false),
        ("echo hullo > README", true),
        (
            "touch -r README at; echo hullo > README; touch -r at README; rm at",
            true,
        ),
        ("chmod +x README", true),
        ("rm README", true),
        ("rm README; ln -s src README", true),
        ("rm README; mkdir README; echo x > README/x", true),
        ("echo x > new", true),
        ("echo x > src/new", true),
        ("mkdir deep; echo x > deep/new", true),
        ("echo '*' > .gitignore", true),
        ("mkdir build; echo x > build/y; echo x > new", true),
    ] {
        let fixture = Fixture::new();
        let (repository, workspace) = fixture.workspace();
        shell(&workspace.path, script);
        let found = repository.has_unsaved(&workspace, &workspace.base);
        assert_eq!(found.expect("files"), is_unsaved, "{script}");
        // And again, with all that the first look left.
        let found = repository.has_unsaved(&workspace, &workspace.base);
        assert_eq!(found.expect("files"), is_unsaved, "{script}, once more");
    }
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    let elsewhere = format!(
        "mv '{0}' '{0}-away'; ln -s '{0}-away' '{0}'",
        workspace.path.display()
    );
    shell(fixture.root(), &elsewhere);
    let found = repository.has_unsaved(&workspace, &workspace.base);
    assert!(found.is_err(), "a link to somewhere else: {found:?}");
}

#[test]
fn worktrees_of_one_name_are_told_apart() {
    let fixture = Fixture::new();
    let repository = fixture.open();
    let first = fixture.plan();
    let second = WorkspacePlan {
        goal: part("002-demo"),
        branch: "feat/second".to_owned(),
        path: fixture.root().join("kapi home/others/001-demo"),
        ..first.clone()
    };
    for plan in [&first, &second] {
        repository.create_workspace(plan).expect("workspace");
    }
    for plan in [&first, &second] {
        let found = repository.find_workspace(&plan.goal, &plan.path);
        let found = found.expect("files").expect("a workspace");
        assert_eq!(found.branch, plan.branch);
    }
}

#[test]
fn where_a_commit_stands_is_seen_from_every_side() {
    let fixture = Fixture::new();
    let repository = fixture.open();
    let state = |commit: &CommitId| repository.state(commit, "feat/x").expect("standing");
    fixture.git(&["checkout", "-q", "-b", "feat/x"]);
    write(&fixture.repo().join("new"), "n");
    fixture.commit("work");
    let work = fixture.base();
    let found = state(&work);
    assert!(
        !found.is_held() && !found.is_merged() && !found.is_pushed(),
        "{found:?}"
    );
    fixture.git(&["update-ref", "refs/remotes/origin/feat/x", work.as_str()]);
    let found = state(&work);
    assert!(
        found.is_held() && found.is_pushed() && !found.is_merged(),
        "{found:?}"
    );
    assert_eq!(found.remote_branches, ["origin/feat/x"]);
    fixture.git(&["update-ref", "-d", "refs/remotes/origin/feat/x"]);
    // The same change by another commit.
    fixture.git(&["checkout", "-q", "main"]);
    write(&fixture.repo().join("other"), "o");
    fixture.commit("other");
    fixture.git(&["cherry-pick", work.as_str()]);
    let found = state(&work);
    assert!(
        found.is_merged() && found.is_in_head_otherwise && !found.is_held(),
        "{found:?}"
    );
    fixture.git(&["reset", "-q", "--hard", "HEAD~1"]);
    fixture.git(&["merge", "-q", "-m", "merge", "feat/x"]);
    let found = state(&work);
    assert!(found.is_in_head && found.is_held(), "{found:?}");
    assert_eq!(found.branches, ["main"]);
}

#[test]
fn only_a_goals_own_worktree_goes() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    let goal = workspace.goal.clone();
    let found = repository
        .find_workspace(&goal, &workspace.path)
        .expect("find");
    assert_eq!(found.expect("a workspace").branch, BRANCH);
    let strange = part("002-other");
    let error = repository
        .remove_worktree(&strange, &workspace.path)
        .expect_err("not its");
    assert!(matches!(error, RescueError::NotOurs { .. }), "{error}");
    let foreign = fixture.root().join("foreign");
    write(&foreign.join("x"), "mine");
    let error = repository
        .remove_worktree(&goal, &foreign)
        .expect_err("foreign");
    assert!(matches!(error, RescueError::NotOurs { .. }), "{error}");
    // What an agent makes of the place leads nowhere.
    shell(
        &workspace.path,
        &format!(
            "rm .git; echo 'gitdir: {}' > .git; ln -s '{}' out; mkdir shut; chmod 0 shut",
            fixture.repo().join(".git").display(),
            foreign.display()
        ),
    );
    fixture.git(&["worktree", "lock", &workspace.path.display().to_string()]);
    let error = repository
        .remove_worktree(&goal, &workspace.path)
        .expect_err("locked");
    assert!(matches!(error, RescueError::Locked { .. }), "{error}");
    fixture.git(&["worktree", "unlock", &workspace.path.display().to_string()]);
    repository
        .remove_worktree(&goal, &workspace.path)
        .expect("remove");
    assert!(!workspace.path.exists());
    assert_eq!(everything(&foreign).len(), 1);
    assert_eq!(
        fixture
            .git(&["worktree", "list", "--porcelain"])
            .matches("worktree ")
            .count(),
        1
    );
    repository
        .remove_worktree(&goal, &workspace.path)
        .expect("again");
    assert_eq!(
        repository
            .find_workspace(&goal, &workspace.path)
            .expect("find"),
        None
    );
}

#[test]
fn a_branch_goes_only_when_its_work_stays() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    let goal = workspace.goal.clone();
    write(&workspace.path.join("new"), "n");
    let candidate = commit(&repository, &workspace);
    repository
        .publish(&workspace, &candidate.commit)
        .expect("publish");
    let remove = |branch: &str, expected: &CommitId| {
        named(|name| repository.remove_branch(&goal, branch, expected, name))
    };
    let error = remove(BRANCH, &candidate.commit).expect_err("in use");
    assert!(matches!(error, RescueError::CheckedOut { .. }), "{error}");
    let error = remove(BRANCH, &workspace.base).expect_err("moved");
    assert!(matches!(error, RescueError::Moved { .. }), "{error}");
    let error = remove("main", &workspace.base).expect_err("in use");
    assert!(matches!(error, RescueError::CheckedOut { .. }), "{error}");
    repository
        .remove_worktree(&goal, &workspace.path)
        .expect("remove");
    // Somebody went on from there: that is not ours to remove.
    fixture.git(&["branch", "theirs", BRANCH]);
    fixture.git(&["checkout", "-q", BRANCH]);
    write(&fixture.repo().join("more"), "m");
    fixture.commit("a person's");
    let theirs = fixture.base();
    fixture.git(&["checkout", "-q", "main"]);
    let error = remove(BRANCH, &theirs).expect_err("not ours");
    assert!(matches!(error, RescueError::NotOurs { .. }), "{error}");
    fixture.git(&["branch", "-q", "-f", BRANCH, "theirs"]);
    // Held by another branch, so nothing needs rescue; alone, it is rescued first.
    assert_eq!(remove(BRANCH, &candidate.commit).expect("remove"), None);
    fixture.git(&["branch", "-q", "-m", "theirs", BRANCH]);
    let rescued = remove(BRANCH, &candidate.commit)
        .expect("remove")
        .expect("a rescue");
    assert_eq!(
        rescued.restore_line,
        format!("git branch {BRANCH} {}", rescued.ref_name)
    );
    shell(&fixture.repo(), &rescued.restore_line);
    assert_eq!(
        fixture.git(&["rev-parse", BRANCH]),
        candidate.commit.as_str()
    );
    fixture.git(&["branch", "-q", "-D", BRANCH]);
    assert_eq!(remove(BRANCH, &candidate.commit).expect("gone"), None);
}

#[test]
fn refs_of_kapi_are_listed_and_removed_all_or_none() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    commit(&repository, &workspace);
    let refs = repository.kapi_refs().expect("refs");
    let names: Vec<&str> = refs.iter().map(|found| found.name.as_str()).collect();
    assert_eq!(
        names,
        ["refs/kapi/001-demo/base", "refs/kapi/001-demo/turn-1"]
    );
    let turn = refs.get(1).expect("a turn").clone();
    assert_eq!(turn.committed_at_unix_seconds, AT);
    for name in [
        "refs/heads/main",
        "refs/kapi-other/x",
        "refs/kapi",
        "refs/kapi/x y",
    ] {
        let foreign = KapiRef {
            name: name.to_owned(),
            ..turn.clone()
        };
        let error = repository
            .remove_kapi_refs(&[turn.clone(), foreign])
            .expect_err(name);
        assert!(
            matches!(error, RescueError::NotOurs { .. }),
            "{name}: {error}"
        );
    }
    let moved = KapiRef {
        commit: workspace.base.clone(),
        ..turn.clone()
    };
    let error = repository.remove_kapi_refs(&[moved]).expect_err("moved");
    assert!(matches!(error, RescueError::Moved { .. }), "{error}");
    assert_eq!(repository.kapi_refs().expect("refs"), refs);
    repository.remove_kapi_refs(&refs).expect("remove");
    assert_eq!(repository.kapi_refs().expect("refs"), []);
    repository.remove_kapi_refs(&refs).expect("again");
    assert!(fs::exists(fixture.repo().join(".git/refs/heads/main")).expect("look"));
}

#[test]
fn a_branch_that_is_held_back_is_worked_on_as_any_other_and_nobody_sees_it() {
    let fixture = Fixture::new();
    let repository = fixture.open();
    let mut plan = fixture.plan();
    plan.branch = "refs/kapi/held/attempt-1/kapi/task_1".to_owned();
    let workspace = repository.create_workspace(&plan).expect("workspace");
    let again = repository.create_workspace(&plan).expect("again");
    assert_eq!(again.origin, WorkspaceOrigin::Adopted);
    write(&workspace.path.join("new"), "n");
    let made = commit(&repository, &workspace).commit;
    repository.publish(&workspace, &made).expect("published");
    assert_eq!(fixture.git(&["rev-parse", &plan.branch]), made.as_str());
    let branches = ["branch", "--all", "--format=%(refname:short)"];
    assert_eq!(fixture.git(&branches), "main");
    let found = repository
        .find_workspace(&plan.goal, &plan.path)
        .expect("looked");
    assert_eq!(found.expect("a workspace").branch, plan.branch);
    repository
        .remove_worktree(&plan.goal, &plan.path)
        .expect("removed");
    // It holds its commit as a branch does; once it goes, the line makes a branch of it.
    assert!(repository.state(&made, "").expect("state").is_held());
    let removed = named(|name| repository.remove_branch(&plan.goal, &plan.branch, &made, name));
    let kept = removed.expect("removed").expect("kept");
    shell(&fixture.repo(), &kept.restore_line);
    assert_eq!(fixture.git(&["rev-parse", "kapi/task_1"]), made.as_str());
}
