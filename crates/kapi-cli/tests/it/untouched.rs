//! The person's repository, byte for byte: nothing but Kapi's own refs and objects is new.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::environment::{BRANCH, Environment, write};

/// What a run may add to a repository, by the beginning of the path below `.git`.
pub(crate) const OWN: &[&str] = &[
    "refs/kapi",
    "refs/heads/feat",
    "logs/refs/heads/feat",
    "objects",
    "worktrees",
];
const HOOKS: &[&str] = &[
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-checkout",
    "post-merge",
    "pre-push",
    "post-rewrite",
    "reference-transaction",
    "post-index-change",
    "fsmonitor-watchman",
    "pre-auto-gc",
];

#[test]
fn a_run_changes_nothing_of_a_dirty_repository() {
    let env = dirty_environment();
    let betrayed = env.root().join("betrayed");
    let status_before = status(&env);
    let refs_before = others_refs(&env);
    let git_before = files(&env.repository().join(".git"), OWN);
    let tree_before = files(&env.repository(), &[".git", ".ilchul"]);
    if betrayed.exists() {
        // Asking git for its status above may run the person's own programs.
        fs::remove_file(&betrayed).unwrap();
    }
    let agent = "command:[ $KAPI_TURN = 1 ] && { echo wrong again > answer.txt; git stash -q; } \
                 || echo 42 > answer.txt; echo evil > evil.flt; git add -A; git commit -qm mine";
    let run = env.run(
        agent,
        &[
            "--judge",
            r#"command:echo '{"verdict":"done","reason":"ok"}'"#,
        ],
    );
    run.assert_status("done", 0);
    for command in [
        &["status"][..],
        &["show", "1"],
        &["diff", "1"],
        &["audit"],
        &["log", "1"],
    ] {
        assert_eq!(env.kapi(command).code, 0, "{command:?}");
    }
    assert!(
        !betrayed.exists(),
        "{}",
        fs::read_to_string(&betrayed).unwrap()
    );
    assert_same(&git_before, &files(&env.repository().join(".git"), OWN));
    assert_same(
        &tree_before,
        &files(&env.repository(), &[".git", ".ilchul"]),
    );
    assert_eq!(status(&env), status_before);
    // Other branches may share the prefix that is left out above.
    assert_eq!(others_refs(&env), refs_before);
    assert_eq!(env.show(BRANCH, "answer.txt"), "42");
}

#[test]
fn a_run_that_fails_changes_nothing_either() {
    let env = dirty_environment();
    let before = files(&env.repository().join(".git"), OWN);
    let tree_before = files(&env.repository(), &[".git", ".ilchul"]);
    let run = env.run("command:rm -rf ./* .git", &["--turns", "1"]);
    run.assert_status("paused", 5);
    assert_same(&before, &files(&env.repository().join(".git"), OWN));
    assert_same(
        &tree_before,
        &files(&env.repository(), &[".git", ".ilchul"]),
    );
}

#[test]
fn the_person_is_told_what_is_not_included() {
    let env = dirty_environment();
    let run = env.run("command:echo 42 > answer.txt", &[]);
    let note = run
        .stderr
        .lines()
        .find(|line| line.starts_with("note: Not included: "));
    let note = note.unwrap_or_else(|| panic!("{}", run.stderr));
    assert!(note.contains("1 staged, 1 modified, 1 untracked"), "{note}");
    for name in ["staged.txt", "notes.txt", "new.txt"] {
        assert!(note.contains(name), "{note}");
        let listed = env.git(&["ls-tree", "--name-only", BRANCH]);
        assert_eq!(listed.contains(name), name == "notes.txt", "{listed}");
    }
    assert_eq!(env.show(BRANCH, "notes.txt"), "committed");
    let clean = Environment::new();
    let run = clean.run("command:echo 42 > answer.txt", &[]);
    assert!(!run.stderr.contains("Not included"), "{}", run.stderr);
}

#[test]
fn the_state_directory_ignores_itself() {
    let env = Environment::new();
    env.run("command:echo 42 > answer.txt", &[]);
    assert_eq!(status(&env), "");
    assert_eq!(env.read(".ilchul/.gitignore"), "*\n");
}

/// Makes a repository with everything in it that a careless tool would trip over.
fn dirty_environment() -> Environment {
    let env = Environment::new();
    env.write("notes.txt", "committed\n");
    env.write(".gitattributes", "*.flt filter=spy\n");
    env.write("some.flt", "filtered\n");
    env.commit_all("more");
    env.git(&["tag", "v1"]);
    env.git(&["branch", "feat/mine"]);
    env.write("notes.txt", "stashed\n");
    env.git(&["stash", "--quiet"]);
    env.write("notes.txt", "modified\n");
    env.write("staged.txt", "staged\n");
    env.git(&["add", "staged.txt"]);
    env.write("new.txt", "untracked\n");
    let spy = env.root().join("spy.sh");
    let line = format!(
        "#!/bin/sh\necho \"$0 $*\" >> {}/betrayed\n",
        env.root().display()
    );
    program(&spy, &line);
    for hook in HOOKS {
        program(&env.repository().join(".git/hooks").join(hook), &line);
    }
    let spy = spy.display().to_string();
    for (key, value) in [
        ("core.fsmonitor", spy.as_str()),
        ("filter.spy.clean", &spy),
        ("filter.spy.smudge", &spy),
        ("filter.spy.process", &spy),
        ("core.editor", &spy),
        ("core.pager", &spy),
        ("diff.external", &spy),
        ("commit.gpgsign", "true"),
        ("gpg.program", &spy),
        ("gc.auto", "1"),
        ("core.logAllRefUpdates", "always"),
    ] {
        env.git(&["config", key, value]);
    }
    env
}

fn program(path: &Path, content: &str) {
    write(path, content);
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Returns what git says of the checkout, without letting it refresh anything.
fn status(env: &Environment) -> String {
    let settings = [
        "core.fsmonitor=false",
        "filter.spy.process=",
        "filter.spy.clean=",
    ];
    let mut args = vec!["--no-optional-locks"];
    args.extend(settings.iter().flat_map(|setting| ["-c", setting]));
    args.extend(["status", "--porcelain"]);
    env.git(&args)
}

/// Returns every ref that is not Kapi's, with what it points at.
fn others_refs(env: &Environment) -> Vec<String> {
    let refs = env.git(&["for-each-ref", "--format=%(refname) %(objectname)"]);
    let own = ["refs/kapi/".to_owned(), format!("refs/heads/{BRANCH} ")];
    let is_own = |line: &&str| own.iter().any(|prefix| line.starts_with(prefix));
    refs.lines()
        .filter(|line| !is_own(line))
        .map(str::to_owned)
        .collect()
}

/// Returns every file below a directory with its mode and content, except what begins with one of
/// `left_out`.
pub(crate) fn files(root: &Path, left_out: &[&str]) -> BTreeMap<String, (u32, Vec<u8>)> {
    let mut found = BTreeMap::new();
    let mut dirs = vec![root.to_path_buf()];
    while let Some(dir) = dirs.pop() {
        for entry in fs::read_dir(&dir).unwrap() {
            let path = entry.unwrap().path();
            let name = path.strip_prefix(root).unwrap().display().to_string();
            let is_left_out = |prefix: &&str| Path::new(&name).starts_with(prefix);
            if left_out.iter().any(is_left_out) {
                continue;
            }
            let kind = fs::symlink_metadata(&path).unwrap();
            if kind.is_dir() {
                dirs.push(path);
            } else {
                let mode = kind.permissions().mode();
                found.insert(name, (mode, fs::read(&path).unwrap_or_default()));
            }
        }
    }
    found
}

pub(crate) fn assert_same(
    before: &BTreeMap<String, (u32, Vec<u8>)>,
    after: &BTreeMap<String, (u32, Vec<u8>)>,
) {
    let names = |map: &BTreeMap<String, (u32, Vec<u8>)>| map.keys().cloned().collect::<Vec<_>>();
    assert_eq!(names(before), names(after));
    for (name, content) in before {
        assert!(after.get(name) == Some(content), "{name} has changed");
    }
}
