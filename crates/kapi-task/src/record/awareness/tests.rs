//! Tests of what an agent is told before its task.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::unix::fs::symlink;
use std::path::Path;

use super::{AWARENESS_FILE, Circumstances, compose, describe, load};

#[test]
fn parts_that_are_empty_are_left_out_and_the_line_stays() {
    let whole = "## Kernel Awareness\nA\n\n## Guardrails (lessons from past runs)\nG\n\n---\n\nP";
    assert_eq!(compose(" A\n", "G\n", "P"), whole);
    assert_eq!(compose("A", " ", "P"), "## Kernel Awareness\nA\n\n---\n\nP");
    assert_eq!(compose("", "", "P"), "---\n\nP");
}

#[test]
fn the_nearest_text_of_the_project_is_used() {
    let above = tempfile::tempdir().unwrap();
    let root = above.path().join("project");
    let inner = root.join("a/b");
    fs::create_dir_all(&inner).unwrap();
    let put = |dir: &Path, text: &str| {
        fs::create_dir_all(dir.join(".pi")).unwrap();
        let mut file = File::create(dir.join(AWARENESS_FILE)).unwrap();
        file.write_all(text.as_bytes()).unwrap();
    };
    put(above.path(), "of somebody else");
    let shipped = load(&root, &inner);
    assert_eq!(shipped.source, "shipped:kernel-awareness.md");
    let headings = [
        "# How to Set Yourself Up for Success",
        "## Before You Start",
    ];
    let more = ["## While You Work", "## When You Finish"];
    for heading in headings.iter().chain(more.iter()) {
        assert!(
            shipped.text.lines().any(|line| line == *heading),
            "{heading}"
        );
    }
    put(&root, "\r\n of the project \r\n");
    assert_eq!(load(&root, &inner).text, "of the project");
    put(&root.join("a"), "nearer");
    let nearer = load(&root, &inner);
    assert_eq!(
        (nearer.text.as_str(), nearer.source.as_str()),
        ("nearer", "a/.pi/kernel-awareness.md")
    );
    put(&root.join("a"), " \n");
    assert_eq!(load(&root, &inner).text, shipped.text);
    put(&root.join("a"), &"x".repeat(20_000));
    let long = load(&root, &inner);
    assert_eq!(long.text, shipped.text);
    assert_eq!(long.fault.unwrap().what, "it is longer than 16 KiB");
}

#[test]
fn a_text_outside_of_the_project_is_not_used() {
    let above = tempfile::tempdir().unwrap();
    let root = above.path().join("project");
    fs::create_dir_all(root.join(".pi")).unwrap();
    File::create(above.path().join("secret")).unwrap();
    symlink("../../secret", root.join(AWARENESS_FILE)).unwrap();
    let loaded = load(&root, &root);
    assert_eq!(loaded.source, "shipped:kernel-awareness.md");
    assert!(
        loaded
            .fault
            .unwrap()
            .what
            .starts_with("a symbolic link points outside")
    );
}

#[test]
fn an_agent_knows_its_limits_its_place_and_its_checks() {
    let tools = ["Read".to_owned(), "Bash".to_owned()];
    let checks = ["the command `cargo test`".to_owned()];
    let run = Circumstances {
        level: "native",
        network: "the hosts that the user allowed",
        is_read_only: false,
        branch: Some("kapi/loop"),
        keeps_commits: false,
        time_ms: Some(125_000),
        tokens: Some(50_000),
        usd_micros: Some(500_000),
        tools: &tools,
        checks: &checks,
    };
    let expected = "\
## This Run
- You run in a sandbox (native). Nothing outside of your workspace can be changed, and trying is a waste of time.
- Your changes to the workspace are committed to the branch `kapi/loop` when you end. Do not commit, push or switch branches yourself.
- Besides your model, you can reach: the hosts that the user allowed.
- You have 2 minutes and 5 seconds, 50000 tokens, $0.50. What exceeds it ends you at once, wherever you are; what you wrote until then is kept.
- Your tools: Read, Bash.
- When you end, Kapi checks your work by itself:
  - the command `cargo test`";
    assert_eq!(describe(&run), expected);
    let keeps = Circumstances {
        keeps_commits: true,
        ..run
    };
    let told = describe(&keeps);
    assert!(!told.contains("Do not commit"), "{told}");
    let branch = "- Your commits, and then your other changes to the workspace, are put on the branch `kapi/loop` when you end.";
    assert!(told.contains(branch), "{told}");
    let bare = Circumstances {
        level: "none",
        network: "everything",
        is_read_only: true,
        branch: None,
        keeps_commits: false,
        time_ms: None,
        tokens: None,
        usd_micros: None,
        tools: &[],
        checks: &[],
    };
    let expected = "\
## This Run
- You run without isolation: what you do outside of the workspace stays done.
- Your workspace cannot be written to. Your answer is what counts.
- Besides your model, you can reach: everything.
- You have no limit of time, tokens or money; be sparing all the same.";
    assert_eq!(describe(&bare), expected);
}
