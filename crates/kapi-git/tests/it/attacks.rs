//! Known attacks on whoever runs git around an agent, each tried against all of our git at once.
//!
//! Each plants something that makes plain git run the trap, runs everything we do on the host,
//! checks that it worked and the trap did not go off, and then that plain git sets it off: a trap
//! that nothing springs proves nothing.

use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::time::Duration;

use kapi_git::candidate::Candidate;
use kapi_git::checkout::CheckoutPlan;
use kapi_git::private_view::{PrivateView, PrivateViewPlan};
use kapi_git::push::{PushPlan, Remote};
use kapi_git::repository::Repository;
use kapi_git::workspace::{GitWorkspace, WorkspaceOrigin};

use crate::fixture::{
    BRANCH, Fixture, author, changed, commit, everything, git_in, read, shell, write,
};
use crate::push::{add_origin, environment};

const TIMEOUT: Duration = Duration::from_secs(60);

fn hook(path: &Path, trap: &str) {
    write(path, &format!("#!/bin/sh\nexec '{trap}'\n"));
    fs::set_permissions(path, Permissions::from_mode(0o755)).expect("chmod");
}

fn view(fixture: &Fixture, repository: &Repository, workspace: &GitWorkspace) -> PrivateView {
    let store = fixture.store(repository, &workspace.base);
    let to = fixture.root().join("views/one");
    let plan = PrivateViewPlan {
        to: &to,
        inside: &to,
        objects_inside: &store.object_dirs,
        shown: &workspace.shown(),
        commit: &workspace.base,
        author: &author(),
    };
    repository.private_view(&plan, &store).expect("view")
}

/// Does all that we ever do on the host with a workspace, as a launch after a crash would.
fn exercise(fixture: &Fixture) -> Candidate {
    let repository = fixture.open();
    repository.dirt().expect("dirt");
    let plan = fixture.plan();
    let found = repository
        .find_workspace(&plan.goal, &plan.path)
        .expect("find")
        .expect("a workspace");
    repository.has_unsaved(&found, &found.base).expect("files");
    let workspace = repository.create_workspace(&plan).expect("workspace");
    assert_eq!(workspace.origin, WorkspaceOrigin::Adopted);
    view(fixture, &repository, &workspace);
    let candidate = commit(&repository, &workspace);
    repository
        .diff(&workspace.base, &candidate.commit, 1 << 20)
        .expect("diff");
    let to = fixture.root().join("clean/one");
    repository
        .checkout(&CheckoutPlan {
            commit: &candidate.commit,
            base: &workspace.base,
            protect: &["tests/**".to_owned()],
            to: &to,
        })
        .expect("checkout");
    let environment = environment(fixture);
    let remote = Remote {
        name: "origin",
        environment: &environment,
        timeout: TIMEOUT,
    };
    repository
        .continue_from(&remote, BRANCH, &workspace.base)
        .expect("start");
    repository
        .publish(&workspace, &candidate.commit)
        .expect("publish");
    let pushed = repository
        .push(&PushPlan {
            remote,
            branch: BRANCH,
            remote_branch: BRANCH,
        })
        .expect("push");
    assert_eq!(pushed.commit, candidate.commit);
    repository
        .state(&candidate.commit, BRANCH)
        .expect("standing");
    repository
        .reset_workspace(&workspace, &candidate.commit)
        .expect("reset");
    candidate
}

/// Plants, exercises, and then lets plain git fall into it.
#[track_caller]
fn survives(
    plant: impl FnOnce(&Fixture, &GitWorkspace, &str),
    fall: impl FnOnce(&Fixture, &GitWorkspace),
) {
    let fixture = Fixture::new();
    add_origin(&fixture);
    let trap = fixture.trap();
    let (_, workspace) = fixture.workspace();
    write(&workspace.path.join("work"), "done\n");
    plant(&fixture, &workspace, &trap);
    // Planting may have used plain git.
    let trace = fixture.root().join("sprung");
    if trace.exists() {
        fs::remove_file(&trace).expect("remove");
    }
    let kept = fixture.root().join("planted");
    shell(
        fixture.root(),
        &format!("cp -a '{}' '{}'", workspace.path.display(), kept.display()),
    );
    let candidate = exercise(&fixture);
    fixture.assert_not_sprung();
    assert!(changed(&candidate).contains(&"work Added".to_owned()));
    // What was planted may have been cleaned away: put it back for plain git.
    shell(
        fixture.root(),
        &format!(
            "rm -rf '{0}'; cp -a '{1}' '{0}'",
            workspace.path.display(),
            kept.display()
        ),
    );
    fall(&fixture, &workspace);
    fixture.assert_sprung();
}

fn try_shell(dir: &Path, script: &str) {
    shell(dir, &format!("({script}) > /dev/null 2>&1 || true"));
}

#[test]
fn a1_hooks_by_a_relative_path_that_the_agent_writes() {
    survives(
        |fixture, workspace, trap| {
            fixture.git(&["config", "core.hooksPath", ".husky"]);
            hook(&workspace.path.join(".husky/post-index-change"), trap);
        },
        |_, workspace| try_shell(&workspace.path, "touch README; git status"),
    );
}

#[test]
fn a2_hooks_of_push_fetch_and_refs() {
    survives(
        |fixture, workspace, trap| {
            fixture.git(&["config", "core.hooksPath", ".husky"]);
            for name in [
                "pre-push",
                "reference-transaction",
                "post-checkout",
                "post-merge",
                "pre-commit",
                "pre-auto-gc",
            ] {
                hook(&workspace.path.join(".husky").join(name), trap);
                hook(&fixture.repo().join(".husky").join(name), trap);
                hook(&fixture.repo().join(".git/.husky").join(name), trap);
            }
        },
        |fixture, _| try_shell(&fixture.repo(), "git push origin main:again"),
    );
}

#[test]
fn a3_a_repository_in_the_place_of_a_submodule() {
    let fixture = Fixture::new();
    let link = format!("160000,{},lib/sub", fixture.base());
    fixture.git(&["update-index", "--add", "--cacheinfo", &link]);
    write(
        &fixture.repo().join(".gitmodules"),
        "[submodule \"s\"]\n\tpath = lib/sub\n\turl = ext::sh\n",
    );
    fixture.git(&["add", ".gitmodules"]);
    fixture.git(&["commit", "-q", "-m", "submodule"]);
    add_origin(&fixture);
    let trap = fixture.trap();
    let (_, workspace) = fixture.workspace();
    write(&workspace.path.join("work"), "done\n");
    shell(
        &workspace.path,
        &format!(
            "git init -q lib/sub; cd lib/sub; git -c user.name=a -c user.email=b commit -q --allow-empty -m x
             git config core.fsmonitor '{trap}'"
        ),
    );
    git_in(&workspace.path, &["status"]);
    fixture.assert_sprung();
    fs::remove_file(fixture.root().join("sprung")).expect("remove");
    exercise(&fixture);
    fixture.assert_not_sprung();
}

#[test]
fn a4_a5_the_link_of_the_worktree_leads_to_a_repository_of_the_agents() {
    survives(
        |_, workspace, trap| {
            let evil = workspace.path.join("evil");
            shell(
                &workspace.path,
                &format!(
                    "rm .git; git init -q evil; cd evil; git config core.fsmonitor '{trap}'
                     git config core.sshCommand '{trap}'; git config core.worktree ..
                     git config diff.external '{trap}'; git config alias.status '!{trap}'
                     git config core.hooksPath '{}'",
                    workspace.path.display()
                ),
            );
            hook(&workspace.path.join("reference-transaction"), trap);
            write(
                &workspace.path.join(".git"),
                &format!("gitdir: {}\n", evil.join(".git").display()),
            );
        },
        |_, workspace| try_shell(&workspace.path, "git status"),
    );
}

#[test]
fn a6_a8_what_an_agent_makes_of_its_own_git_directory() {
    let fixture = Fixture::new();
    add_origin(&fixture);
    let trap = fixture.trap();
    let (repository, workspace) = fixture.workspace();
    write(&workspace.path.join("work"), "done\n");
    let made = view(&fixture, &repository, &workspace);
    let fresh = everything(&made.git_dir);
    let precious = fixture.root().join("precious");
    write(&precious.join("file"), "mine");
    let dir = &made.git_dir;
    git_in(dir, &["config", "core.fsmonitor", &trap]);
    git_in(
        dir,
        &[
            "config",
            "core.hooksPath",
            &dir.join("hooks").display().to_string(),
        ],
    );
    git_in(dir, &["config", "include.path", "/etc/hostname"]);
    hook(&dir.join("hooks/post-index-change"), &trap);
    shell(
        dir,
        &format!(
            "rm -rf index HEAD objects/info packed-refs
             ln -s '{0}/file' index; ln -s '{0}/file' HEAD; ln -s '{0}' objects/info
             ln -s '{0}/file' packed-refs; ln -s '{0}/file' shallow; ln -s '{0}' refs/replace
             head -c 100000 /dev/urandom > objects/pack/pack-x.pack; mkfifo objects/pack/pipe",
            precious.display()
        ),
    );
    let candidate = exercise(&fixture);
    assert!(changed(&candidate).contains(&"work Added".to_owned()));
    assert_eq!(everything(&precious).len(), 1);
    assert_eq!(read(&precious.join("file")), "mine");
    fixture.assert_not_sprung();
    let again = view(&fixture, &repository, &workspace);
    assert_eq!(everything(&again.git_dir), fresh);
    // A hostile index, in the agent's view and in the place where a careless host would take it.
    write(
        &again.git_dir.join("index"),
        "DIRC\u{0}\u{0}\u{0}\u{2}\u{7f}\u{7f}\u{7f}\u{7f}garbage",
    );
    let again = view(&fixture, &repository, &workspace);
    assert_eq!(everything(&again.git_dir), fresh);
}

#[test]
fn a9_drivers_of_the_persons_own_that_an_agents_attributes_name() {
    survives(
        |fixture, workspace, trap| {
            let home = fixture.root().join("home");
            let mut global = String::new();
            for (section, keys) in [
                ("filter \"lfs\"", &["clean", "smudge", "process"][..]),
                ("diff \"mine\"", &["command", "textconv"]),
                ("merge \"mine\"", &["driver"]),
            ] {
                global.push_str(&["[", section, "]\n"].concat());
                for key in keys {
                    global.push_str(&["\t", key, " = ", trap, "\n"].concat());
                    let section = section.replace(" \"", ".").replace('"', "");
                    fixture.git(&["config", &format!("{section}.{key}"), trap]);
                }
            }
            write(&home.join(".gitconfig"), &global);
            write(
                &workspace.path.join(".gitattributes"),
                "README filter=lfs\n* diff=mine merge=mine\n",
            );
            write(
                &workspace.path.join(".lfsconfig"),
                "[lfs]\n\turl = https://evil.invalid/\n",
            );
        },
        |_, workspace| try_shell(&workspace.path, "touch README; git diff"),
    );
}

#[test]
fn configuration_that_is_included_from_the_tree() {
    survives(
        |fixture, workspace, trap| {
            // A team shares its settings in the tree; the agent's copy is not the person's.
            fixture.git(&["config", "include.path", "../team.gitconfig"]);
            write(
                &workspace.path.join("team.gitconfig"),
                &format!("[core]\n\tfsmonitor = {trap}\n\tsshCommand = {trap}\n\thooksPath = .\n"),
            );
        },
        |fixture, workspace| {
            // As it would be after the person took the agent's copy over unseen.
            fs::copy(
                workspace.path.join("team.gitconfig"),
                fixture.repo().join("team.gitconfig"),
            )
            .expect("copy");
            let repository = fixture.open();
            repository.dirt().expect("dirt");
            fixture.assert_not_sprung();
            try_shell(&fixture.repo(), "git status");
        },
    );
}

#[test]
fn an_embedded_bare_repository() {
    survives(
        |_, workspace, trap| {
            shell(
                &workspace.path,
                &format!(
                    "git init -q --bare sub; cd sub; rm -r hooks; git config core.bare false
                     git config core.worktree .; git config core.fsmonitor '{trap}'"
                ),
            );
        },
        |_, workspace| try_shell(&workspace.path.join("sub"), "git status"),
    );
}

#[test]
fn an_address_that_is_a_program() {
    let fixture = Fixture::new();
    let trap = fixture.trap();
    fixture.git(&["remote", "add", "origin", &format!("ext::{trap}")]);
    fixture.git(&["config", "protocol.ext.allow", "always"]);
    fixture.git(&["config", "push.recurseSubmodules", "on-demand"]);
    fixture.git(&["config", "fetch.recurseSubmodules", "true"]);
    let repository = fixture.open();
    let environment = environment(&fixture);
    let remote = Remote {
        name: "origin",
        environment: &environment,
        timeout: TIMEOUT,
    };
    let start = repository
        .continue_from(&remote, "main", &fixture.base())
        .expect("start");
    assert!(start.unreached.is_some());
    let plan = PushPlan {
        remote,
        branch: "main",
        remote_branch: "main",
    };
    repository.push(&plan).expect_err("refused");
    fixture.assert_not_sprung();
    try_shell(&fixture.repo(), "timeout 20 git ls-remote origin");
    fixture.assert_sprung();
}

#[test]
fn variables_that_lead_git_elsewhere_are_not_passed_on() {
    let fixture = Fixture::new();
    let origin = add_origin(&fixture);
    let trap = fixture.trap();
    let mut environment = environment(&fixture);
    let evil = fixture.root().join("evil");
    git_in(fixture.root(), &["init", "-q", "evil"]);
    for (name, value) in [
        ("GIT_DIR", evil.join(".git").display().to_string()),
        ("GIT_WORK_TREE", evil.display().to_string()),
        ("GIT_OBJECT_DIRECTORY", evil.display().to_string()),
        ("GIT_EXEC_PATH", evil.display().to_string()),
        ("GIT_ASKPASS", trap.clone()),
        ("GIT_EXTERNAL_DIFF", trap.clone()),
        (
            "GIT_CONFIG_PARAMETERS",
            format!("'core.sshCommand'='{trap}'"),
        ),
        ("GIT_CONFIG_COUNT", "1".to_owned()),
        ("GIT_CONFIG_KEY_0", "protocol.allow".to_owned()),
        ("GIT_CONFIG_VALUE_0", "never".to_owned()),
        ("GIT_NAMESPACE", "elsewhere".to_owned()),
    ] {
        environment.insert(name.into(), value.into());
    }
    fixture.git(&["checkout", "-q", "-b", "feat/x"]);
    let pushed = fixture
        .open()
        .push(&PushPlan {
            remote: Remote {
                name: "origin",
                environment: &environment,
                timeout: TIMEOUT,
            },
            branch: "feat/x",
            remote_branch: "feat/x",
        })
        .expect("push");
    assert_eq!(
        git_in(&origin, &["rev-parse", "refs/heads/feat/x"]),
        pushed.commit.as_str()
    );
    fixture.assert_not_sprung();
}

#[test]
fn replaced_objects_are_not_what_is_committed_or_lent() {
    let fixture = Fixture::new();
    add_origin(&fixture);
    write(&fixture.root().join("fake"), "fake\n");
    let fake = fixture.git(&["hash-object", "-w", "../fake"]);
    let real = fixture.git(&["rev-parse", "HEAD:README"]);
    fixture.git(&["replace", &real, &fake]);
    assert_eq!(fixture.git(&["show", "HEAD:README"]), "fake");
    let (_, workspace) = fixture.workspace();
    write(&workspace.path.join("work"), "done\n");
    assert_eq!(read(&workspace.path.join("README")), "hello\n");
    let candidate = exercise(&fixture);
    assert_eq!(changed(&candidate), ["work Added"]);
    assert_eq!(read(&fixture.root().join("clean/one/README")), "hello\n");
}
