//! What an agent may leave in a workspace to make git run a program, lose work or fail.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;

use kapi_git::refused_path::{RefusalReason, RefusedPath};

use crate::fixture::{
    BRANCH, Fixture, changed, commit, git_in, listing, read, refused, shell, turn, write,
};

#[test]
fn filters_of_the_repository_never_run() {
    let fixture = Fixture::new();
    let trap = fixture.trap();
    write(&fixture.repo().join(".gitattributes"), "*.lfs filter=lfs\n");
    write(&fixture.repo().join("a.lfs"), "pointer\n");
    fixture.commit("lfs");
    for key in ["clean", "smudge", "process"] {
        fixture.git(&["config", &format!("filter.lfs.{key}"), &trap]);
        fixture.git(&["config", &format!("filter.other.{key}"), &trap]);
    }
    fixture.git(&["config", "filter.lfs.required", "true"]);
    fixture.git(&["config", "diff.other.textconv", &trap]);
    fixture.git(&["config", "diff.other.command", &trap]);
    fixture.git(&["config", "diff.external", &trap]);
    fixture.git(&["config", "merge.other.driver", &trap]);
    let (repository, workspace) = fixture.workspace();
    assert_eq!(read(&workspace.path.join("a.lfs")), "pointer\n");
    write(
        &workspace.path.join(".gitattributes"),
        "* filter=other diff=other merge=other\n",
    );
    write(&workspace.path.join("src/main.txt"), "two\n");
    let candidate = commit(&repository, &workspace);
    assert_eq!(
        changed(&candidate),
        [".gitattributes Modified", "src/main.txt Modified"]
    );
    repository
        .diff(&workspace.base, &candidate.commit, 1 << 20)
        .expect("diff");
    repository
        .reset_workspace(&workspace, &candidate.commit)
        .expect("reset");
    repository
        .publish(&workspace, &candidate.commit)
        .expect("publish");
    fixture.assert_not_sprung();
    shell(
        &workspace.path,
        "touch src/main.txt; git status >/dev/null 2>&1 || true",
    );
    fixture.assert_sprung();
}

#[test]
fn hooks_and_monitors_of_the_repository_never_run() {
    let fixture = Fixture::new();
    let trap = fixture.trap();
    let hooks = fixture.repo().join(".git/hooks");
    fs::create_dir_all(&hooks).expect("hooks");
    for hook in [
        "post-checkout",
        "reference-transaction",
        "pre-commit",
        "post-index-change",
    ] {
        shell(&hooks, &format!("ln -sf '{trap}' {hook}"));
    }
    fixture.git(&["config", "core.hooksPath", &hooks.display().to_string()]);
    fixture.git(&["config", "core.fsmonitor", &trap]);
    fixture.git(&["config", "alias.status", &format!("!{trap}")]);
    let (repository, workspace) = fixture.workspace();
    write(&workspace.path.join("new"), "n");
    let candidate = commit(&repository, &workspace);
    repository
        .reset_workspace(&workspace, &workspace.base)
        .expect("reset");
    repository
        .publish(&workspace, &candidate.commit)
        .expect("publish");
    repository.dirt().expect("dirt");
    fixture.assert_not_sprung();
    fixture.git(&["update-ref", "refs/heads/x", "HEAD"]);
    fixture.assert_sprung();
}

#[test]
fn a_link_to_another_repository_is_not_followed_and_is_repaired() {
    let fixture = Fixture::new();
    let trap = fixture.trap();
    let (repository, workspace) = fixture.workspace();
    write(&workspace.path.join("new"), "n");
    shell(
        &workspace.path,
        &format!(
            "rm .git; git init -q; git config core.fsmonitor '{trap}'; git config core.worktree /etc
             mkdir -p .git/hooks; ln -s '{trap}' .git/hooks/post-index-change"
        ),
    );
    let candidate = commit(&repository, &workspace);
    assert_eq!(changed(&candidate), ["new Added"]);
    fixture.assert_not_sprung();
    git_in(&workspace.path, &["status"]);
    fixture.assert_not_sprung();
    // A link away, through a name that might be written to.
    let outside = fixture.root().join("outside");
    write(&outside, "mine");
    shell(
        &workspace.path,
        &format!("rm -r .git; ln -s '{}' .git", outside.display()),
    );
    assert_eq!(commit(&repository, &workspace), candidate);
    assert_eq!(read(&outside), "mine");
    assert_eq!(
        git_in(&workspace.path, &["symbolic-ref", "--short", "HEAD"]),
        BRANCH
    );
}

#[test]
fn nested_repositories_are_left_out_named_and_not_entered() {
    let fixture = Fixture::new();
    let trap = fixture.trap();
    let (repository, workspace) = fixture.workspace();
    shell(
        &workspace.path,
        &format!(
            "init() {{ git init -q $1; git -C $1 config core.fsmonitor '{trap}'; echo x > $1/file; }}
             init unborn
             init full; git -C full -c core.fsmonitor=false -c user.name=a -c user.email=b commit -q --allow-empty -m x
             rm README; init README; git -C README -c core.fsmonitor=false -c user.name=a -c user.email=b commit -q --allow-empty -m x
             init src; mkdir -p odd/.git; echo x > odd/.git/x; echo y > odd/y; rm -f ../../sprung; rm -f '{}'",
            fixture.root().join("sprung").display()
        ),
    );
    let candidate = commit(&repository, &workspace);
    assert_eq!(
        changed(&candidate),
        ["README Deleted", "odd/y Added", "src/file Added"]
    );
    assert_eq!(
        refused(&candidate),
        [
            "README NestedRepository",
            "README/.git GitDirectory",
            "full NestedRepository",
            "full/.git GitDirectory",
            "odd/.git GitDirectory",
            "src/.git GitDirectory",
            "unborn NestedRepository",
            "unborn/.git GitDirectory",
        ]
    );
    fixture.assert_not_sprung();
    shell(&workspace.path, "git -C full status > /dev/null");
    fixture.assert_sprung();
}

#[test]
fn an_embedded_bare_repository_is_only_files() {
    let fixture = Fixture::new();
    let trap = fixture.trap();
    let (repository, workspace) = fixture.workspace();
    shell(
        &workspace.path,
        &format!(
            "git init -q --bare sub; cd sub; rm -r hooks; git config core.bare false
             git config core.worktree .; git config core.fsmonitor '{trap}'"
        ),
    );
    let candidate = commit(&repository, &workspace);
    assert!(changed(&candidate).contains(&"sub/config Added".to_owned()));
    let below = kapi_git::repository::Repository::discover(
        &crate::fixture::git(),
        &workspace.path.join("sub"),
    );
    assert!(below.is_err());
    repository
        .reset_workspace(&workspace, &workspace.base)
        .expect("reset");
    assert!(!workspace.path.join("sub").exists());
    fixture.assert_not_sprung();
}

#[test]
fn a_submodule_stays_as_it_is_and_a_repository_in_its_place_is_disarmed() {
    let fixture = Fixture::new();
    let trap = fixture.trap();
    let link = format!("160000,{},lib/sub", fixture.base());
    fixture.git(&["update-index", "--add", "--cacheinfo", &link]);
    write(
        &fixture.repo().join(".gitmodules"),
        "[submodule \"s\"]\n\tpath = lib/sub\n\turl = ext::sh\n",
    );
    fixture.git(&["add", ".gitmodules"]);
    fixture.git(&["commit", "-q", "-m", "submodule"]);
    let (repository, workspace) = fixture.workspace();
    assert!(workspace.path.join("lib/sub").is_dir());
    assert_eq!(commit(&repository, &workspace).changed, []);
    shell(
        &workspace.path,
        &format!(
            "git init -q lib/sub; cd lib/sub; git -c user.name=a -c user.email=b commit -q --allow-empty -m x
             git config core.fsmonitor '{trap}'; echo work > file"
        ),
    );
    // This is what a person's own git would run.
    git_in(&workspace.path, &["status"]);
    fixture.assert_sprung();
    fs::remove_file(fixture.root().join("sprung")).expect("remove");
    let candidate = commit(&repository, &workspace);
    assert_eq!(changed(&candidate), [""; 0]);
    assert_eq!(
        refused(&candidate),
        ["lib/sub InSubmodule", "lib/sub/.git GitDirectory"]
    );
    assert_eq!(read(&workspace.path.join("lib/sub/file")), "work\n");
    git_in(&workspace.path, &["status"]);
    fixture.assert_not_sprung();
    // A link in the submodule's place must not lead the cleaning elsewhere.
    let outside = fixture.root().join("outside");
    write(&outside.join(".git/precious"), "x");
    write(&outside.join("sub/.git/precious"), "x");
    shell(
        &workspace.path,
        &format!("rm -r lib/sub; ln -s '{}' lib/sub", outside.display()),
    );
    commit(&repository, &workspace);
    shell(
        &workspace.path,
        &format!("rm -r lib; ln -s '{}' lib", outside.display()),
    );
    commit(&repository, &workspace);
    assert!(outside.join(".git/precious").exists());
    assert!(outside.join("sub/.git/precious").exists());
}

#[test]
fn links_are_never_followed() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    let outside = fixture.root().join("outside");
    write(&outside.join("main.txt"), "secret");
    shell(
        &workspace.path,
        &format!(
            "ln -s /etc/passwd pw; ln -s . loop; rm -r src; ln -s '{}' src
             printf 'src\\n' >> .gitignore",
            outside.display()
        ),
    );
    let candidate = commit(&repository, &workspace);
    assert_eq!(
        listing(&fixture, candidate.commit.as_str()),
        [
            "100644 .gitignore",
            "100644 README",
            "120000 loop",
            "100644 tests/check.sh"
        ]
    );
    assert_eq!(refused(&candidate), ["pw EscapingLink"]);
    // Going back writes in the workspace and not where the link led.
    repository
        .reset_workspace(&workspace, &workspace.base)
        .expect("reset");
    assert_eq!(read(&outside.join("main.txt")), "secret");
    assert_eq!(read(&workspace.path.join("src/main.txt")), "one\n");
    assert!(!workspace.path.join("src").is_symlink());
}

#[test]
fn names_are_bytes() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    let names: [&[u8]; 9] = [
        b"-rf",
        b"--force",
        b"a\nb",
        b"tab\t\"quote\"\\back",
        b"\xff\xfe",
        b" ",
        b":(top)x",
        b"Case",
        b"case",
    ];
    for name in names {
        File::create(workspace.path.join(OsStr::from_bytes(name))).expect("create");
    }
    let candidate = commit(&repository, &workspace);
    assert_eq!(candidate.refused, []);
    let mut found: Vec<&[u8]> = candidate
        .changed
        .iter()
        .map(|change| change.path.as_os_str().as_bytes())
        .collect();
    found.sort_unstable();
    let mut expected = names.to_vec();
    expected.sort_unstable();
    assert_eq!(found, expected);
    repository
        .reset_workspace(&workspace, &workspace.base)
        .expect("reset");
    assert!(!workspace.path.join("-rf").exists());
}

#[test]
fn what_no_commit_should_hold_is_named() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    shell(
        &workspace.path,
        "mkfifo pipe; rm README; mkfifo README; mkdir -p .GIT d/git~1 build; echo x > .GIT/config
         echo x > d/git~1/config; ln -s x .gitmodules; mkfifo build/pipe
         truncate -s 600M huge; truncate -s 600M src/main.txt; echo fine > fine",
    );
    let candidate = commit(&repository, &workspace);
    assert_eq!(changed(&candidate), ["README Deleted", "fine Added"]);
    assert_eq!(
        refused(&candidate),
        [
            ".GIT/config UnsafeName",
            ".gitmodules UnsafeName",
            "README SpecialFile",
            "build/pipe SpecialFile",
            "d/git~1/config UnsafeName",
            "huge TooLarge",
            "pipe SpecialFile",
            "src/main.txt TooLarge",
        ]
    );
}

#[test]
fn a_file_git_cannot_store_does_not_cost_the_others() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    write(
        &workspace.path.join(".gitattributes"),
        "bad* text working-tree-encoding=UTF-16\n",
    );
    for n in 0..20 {
        write(&workspace.path.join(format!("good{n}")), "x");
    }
    write(&workspace.path.join("bad1"), "odd");
    write(&workspace.path.join("bad2"), "odd");
    let candidate = commit(&repository, &workspace);
    let unstorable = |path: &str| RefusedPath {
        path: path.into(),
        why: RefusalReason::Unstorable,
    };
    assert_eq!(candidate.refused, [unstorable("bad1"), unstorable("bad2")]);
    assert_eq!(candidate.changed.len(), 21);
}

#[test]
fn unreadable_files_and_directories_are_opened_up() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    shell(
        &workspace.path,
        "mkdir closed; echo x > closed/x; echo y > y; chmod 0 closed y src",
    );
    let candidate = commit(&repository, &workspace);
    assert_eq!(changed(&candidate), ["closed/x Added", "y Added"]);
    assert_eq!(candidate.refused, []);
}

#[test]
fn a_path_too_long_to_open_is_named_and_removed() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    let name = "d".repeat(200);
    // From the inside out, because the whole path cannot be named.
    let top = workspace.path.join(&name);
    write(&top.join("deep"), "x");
    let above = workspace.path.join("above");
    for _ in 0..30 {
        fs::create_dir(&above).expect("create");
        fs::rename(&top, above.join(&name)).expect("move");
        fs::rename(&above, &top).expect("move");
    }
    let candidate = commit(&repository, &workspace);
    assert!(
        candidate.refused.iter().any(|found| matches!(
            found.why,
            RefusalReason::PathTooLong | RefusalReason::Unreadable
        )),
        "{:?}",
        candidate.refused
    );
    repository
        .reset_workspace(&workspace, &workspace.base)
        .expect("reset");
    assert!(!workspace.path.join(name).exists());
}

#[test]
fn an_agents_own_commits_and_ignore_rules_do_not_hide_work() {
    let fixture = Fixture::new();
    let (repository, workspace) = fixture.workspace();
    // A tracked file stays tracked, whatever the rules say.
    write(&workspace.path.join(".gitignore"), "*\n");
    write(&workspace.path.join("src/main.txt"), "two\n");
    let candidate = commit(&repository, &workspace);
    assert_eq!(
        changed(&candidate),
        [".gitignore Modified", "src/main.txt Modified"]
    );
    // Flags a person's or an agent's git sets on the worktree's own index have no effect.
    git_in(
        &workspace.path,
        &["update-index", "--assume-unchanged", "README"],
    );
    git_in(
        &workspace.path,
        &["update-index", "--skip-worktree", "tests/check.sh"],
    );
    write(&workspace.path.join("README"), "tampered\n");
    write(&workspace.path.join("tests/check.sh"), "exit 0\n");
    let candidate = repository
        .commit_candidate(&workspace, &turn(2))
        .expect("candidate");
    assert_eq!(candidate.changed.len(), 4);
}
