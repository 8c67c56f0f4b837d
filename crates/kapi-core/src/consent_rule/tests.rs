//! Disguises of listed commands, and commands that are none.

use super::{ToolField, matches};

fn asked(list: &[&str], tool: &str, key: &str, text: &str) -> Option<String> {
    let list: Vec<String> = list.iter().map(|entry| (*entry).to_owned()).collect();
    let fields = [ToolField {
        key: key.to_owned(),
        text: text.to_owned(),
    }];
    matches(&list, tool, &fields).map(ToOwned::to_owned)
}

fn is_asked(pattern: &str, command: &str) -> bool {
    asked(&[pattern], "Bash", "command", command).is_some()
}

#[test]
fn ask_before_sees_a_command_however_it_is_dressed() {
    for command in [
        "git push",
        "GIT Push origin main",
        "git  push",
        "git\tpush",
        "'git' \"push\"",
        "g\"\"it pu\\sh",
        "/usr/bin/git -C x push",
        "git -C 'my dir' push",
        "git -C \"my dir\" --no-pager push origin",
        "git -c a.b='c d' --attr-source HEAD push",
        "FOO=1 BAR='x y' git push",
        "sh -c 'git push'",
        "sh -c 'git -C x push'",
        "bash -lc \"git -C 'my dir' push\"",
        "bash -c \"sh -c 'git -C \\\"a b\\\" push'\"",
        "env -i PATH=/bin git -C x push",
        "echo main | xargs git -C x push origin",
        "sudo -u me git -C x push",
        "cd a && git -C x push",
        "cd a; (git -C x push)",
        "true & git -C x push",
        "make || git -C x push",
        "echo $(git -C x push)",
        "echo \"$(git -C x push)\"",
        "echo \"`git -C x push`\"",
        "cat < <(git -C x push)",
        "cat < \"$(git -C 'a b' push)\"",
        "mise exec -- git -C x push",
        "mise x node@22 -- git -C x push",
        "find . -maxdepth 0 -exec git -C x push ;",
        "flock /tmp/l git -C x push",
        "eval git -C x push",
        "eval 'git' '-C x push'",
        "git \\\n  -C x \\\n  push",
        "git${IFS}-C${IFS}x${IFS}push",
        "git pu${nothing}sh",
        "g$@it push",
        "{git,push}",
        "$'\\x67it' $'\\160ush'",
        "$'git' -C x push",
        "bash <<'EOF'\ngit -C x push\nEOF",
        "if true; then git -C x push; fi",
        "for r in a b; do git -C x push $r; done",
        "ssh host \"git -C x push\"",
        "nohup git -C x push >/dev/null 2>&1 &",
        "!git -C x push\n! git -C x push",
        "{ git -C x push; }",
        "git --git-dir=x/.git push",
        "git.exe push",
    ] {
        assert!(is_asked("git push", command), "{command:?}");
    }
}

#[test]
fn ask_before_lets_other_commands_pass() {
    for command in [
        "",
        "git status",
        "git pull",
        "git stash push -m wip",
        "git checkout push-it",
        "git commit -m push",
        "git log --oneline; npm run push-docs",
        "pushd src && git status && popd",
        "cargo test # no pushing of git",
        "echo git; push",
    ] {
        assert!(!is_asked("git push", command), "{command:?}");
    }
    // Raw text is looked for wherever it stands.
    assert!(is_asked("git push", "echo digit push"));
}

#[test]
fn ask_before_compares_options_whatever_their_order() {
    for command in [
        "rm -fr x",
        "rm -f -r x",
        "/bin/rm x -r -f",
        "rm -vrf x",
        "find . -name a | xargs rm -f -r",
    ] {
        assert!(is_asked("rm -rf", command), "{command:?}");
    }
    assert!(!is_asked("rm -rf", "rm -r x"));
    assert!(!is_asked("rm -rf", "rm x"));
    for command in [
        "git push origin main --force",
        "git -C x push --force=1 origin",
    ] {
        assert!(is_asked("git push --force", command), "{command:?}");
    }
    assert!(!is_asked("git push --force", "git push origin main"));
    assert!(is_asked("terraform apply", "terraform -chdir=infra apply"));
    assert!(is_asked("kubectl delete", "kubectl -n prod delete pod a"));
}

#[test]
fn ask_before_reads_raw_text_in_any_tool_that_can_run_it() {
    let list = ["DROP  table"];
    let sql = "psql -c 'drop table users'";
    for (tool, key) in [
        ("Bash", "command"),
        ("shell", "command"),
        ("run_shell_command", "command"),
        ("exec_command", "cmd"),
        ("write_stdin", "chars"),
        ("mcp__db__query", "sql"),
        ("mcp_db_query", "sql"),
        ("mcp__files__write", "content"),
        ("bash", "command"),
        ("powershell", "script"),
        ("mcp__kapi__until_done_wait", "command"),
    ] {
        assert!(asked(&list, tool, key, sql).is_some(), "{tool}");
    }
}

#[test]
fn ask_before_leaves_tools_that_run_nothing_alone() {
    for (tool, key) in [
        ("Write", "content"),
        ("Edit", "new_string"),
        ("apply_patch", "command"),
        ("write_file", "content"),
        ("grep", "pattern"),
        ("TodoWrite", "content"),
        ("Bash", "description"),
        ("mcp__kapi__until_done_block", "reason"),
        ("until_done_plan", "title"),
        ("until_done_wait", "reason"),
    ] {
        assert_eq!(asked(&["git push"], tool, key, "git push"), None, "{tool}");
    }
}

#[test]
fn ask_before_names_the_first_entry_that_matches() {
    let list = ["terraform apply", "git", "git push"];
    let found = asked(&list, "Bash", "command", "git push");
    assert_eq!(found.as_deref(), Some("git"));
    assert_eq!(asked(&[], "Bash", "command", "git push"), None);
}

#[test]
fn ask_before_reads_hostile_text_in_bounds() {
    let hostile = [
        "sudo ".repeat(100_000),
        "$(".repeat(200_000),
        "'".repeat(200_001),
        "\"\\".repeat(200_000),
        "a;".repeat(200_000),
        "sh -c 'a b' ".repeat(40_000),
        "\"a \\\" ".repeat(80_000),
        "{a,".repeat(200_000),
        "${".repeat(200_000),
        "$'\\x".repeat(100_000),
        "\u{0}\u{1b}[2J\u{202e}".repeat(10_000),
    ];
    for text in hostile {
        let padded = format!("{text}\ngit push");
        assert!(is_asked("git push", &padded));
    }
    assert!(is_asked("git push", &"x".repeat(super::CHARS_MAX + 1)));
    let mut nested = "git -C x push".to_owned();
    for _ in 0..12 {
        nested = format!("sh -c '{}'", nested.replace('\'', "'\\''"));
    }
    assert!(is_asked("git push", &nested));
}
