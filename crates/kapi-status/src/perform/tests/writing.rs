//! What the host and an agent write, and what readers see of it.

use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::{fs, thread};

use super::{Host, read, shown};
use crate::file::StatusFile;
use crate::perform::mapping_file;
use crate::perform::writer::{LaunchCompletion, StatusUpdate, forget, list};
use crate::rules::phase::StatusPhase;

fn success() -> LaunchCompletion {
    LaunchCompletion {
        exit_code: 0,
        error: None,
        class: None,
        advice: None,
        pr_url: Some("https://forge.example/pull/7".to_owned()),
    }
}

#[test]
fn a_run_from_its_beginning_to_its_end() {
    let host = Host::new();
    let writer = host.writer("products", "1");
    assert_eq!(
        writer.path(),
        host.status_dir().join("kapi-products-1.json")
    );
    let path = writer.path();
    assert_eq!(shown(path), ("initializing".to_owned(), 0));
    writer
        .phase(StatusPhase::Preparing, 18, "Creating the sandbox")
        .unwrap();
    assert_eq!(shown(path), ("preparing".to_owned(), 18));
    writer.phase(StatusPhase::Starting, 22, "Starting").unwrap();
    writer.tool("Read", "src/main.rs").unwrap();
    assert_eq!(shown(path), ("exploring".to_owned(), 25));
    assert_eq!(read(path).message, "Exploring: src/main.rs");
    writer.tool("Bash", "cd web && \n npm test").unwrap();
    assert_eq!(shown(path), ("testing".to_owned(), 60));
    assert_eq!(read(path).message, "Testing: cd web &&");
    writer.tool("TodoWrite", "").unwrap();
    assert_eq!(read(path).message, "Using a tool: TodoWrite");
    writer
        .phase(StatusPhase::Running, 90, "The agent has finished")
        .unwrap();
    writer
        .phase(StatusPhase::Committing, 92, "Committing")
        .unwrap();
    writer.phase(StatusPhase::Pushing, 97, "Pushing").unwrap();
    assert_eq!(shown(path), ("pushing".to_owned(), 97));
    assert_eq!(writer.complete(&success()).unwrap(), StatusUpdate::Written);
    let file = read(path);
    assert_eq!(
        (file.phase, file.progress, file.exit_code),
        (StatusPhase::Complete, 100, Some(0))
    );
    assert_eq!(file.pr_url.as_deref(), Some("https://forge.example/pull/7"));
    assert_eq!(file.started_at, "2025-12-16T14:30:00Z");
    assert_eq!(file, writer.current());
}

#[test]
fn nothing_moves_after_the_end_and_the_first_end_counts() {
    let host = Host::new();
    let writer = host.writer("p", "1");
    let failed = LaunchCompletion {
        exit_code: 3,
        error: Some("verify failed".to_owned()),
        class: None,
        advice: None,
        pr_url: None,
    };
    writer.complete(&failed).unwrap();
    let ended = read(writer.path());
    assert_eq!(ended.message, "Failed with exit code 3");
    assert_eq!(ended.error.as_deref(), Some("verify failed"));
    assert_eq!(writer.complete(&success()).unwrap(), StatusUpdate::TooLate);
    assert_eq!(writer.tool("Write", "x").unwrap(), StatusUpdate::TooLate);
    assert_eq!(writer.note("x").unwrap(), StatusUpdate::TooLate);
    assert_eq!(writer.steps(1, 2, "x").unwrap(), StatusUpdate::TooLate);
    assert_eq!(
        writer.phase(StatusPhase::Pushing, 99, "x").unwrap(),
        StatusUpdate::TooLate
    );
    assert_eq!(read(writer.path()), ended);
}

#[test]
fn only_complete_is_the_end() {
    let host = Host::new();
    let writer = host.writer("p", "1");
    assert_eq!(
        writer.phase(StatusPhase::Complete, 100, "x").unwrap(),
        StatusUpdate::TooLate
    );
    assert_eq!(shown(writer.path()), ("initializing".to_owned(), 0));
}

#[test]
fn the_file_is_for_its_owner_alone() {
    let host = Host::new();
    let writer = host.writer("p", "1");
    let mode = |path: &std::path::Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(writer.path()), 0o600);
    assert_eq!(mode(&host.status_dir()), 0o700);
    writer.tool("Read", "x").unwrap();
    assert_eq!(mode(writer.path()), 0o600);
}

#[test]
fn readers_always_see_a_whole_file_that_never_goes_back() {
    let host = Host::new();
    let writer = host.writer("p", "1");
    let is_over = AtomicBool::new(false);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut percent, mut n_reads) = (0, 0_u32);
            while !is_over.load(Ordering::SeqCst) {
                let bytes = fs::read(writer.path()).unwrap();
                let file: StatusFile = serde_json::from_slice(&bytes).unwrap();
                assert!(file.progress >= percent);
                percent = file.progress;
                n_reads += 1;
            }
            n_reads
        });
        for n in 0..100 {
            writer
                .tool("Bash", if n % 2 == 0 { "ls" } else { "cargo build" })
                .unwrap();
        }
        is_over.store(true, Ordering::SeqCst);
        assert!(reader.join().unwrap() > 0);
    });
}

#[test]
fn files_are_listed_and_forgotten() {
    let host = Host::new();
    let one = host.writer("p", "1");
    let two = host.writer("p", "2");
    fs::File::create(host.status_dir().join("kapi-broken-1.json")).unwrap();
    fs::create_dir(host.status_dir().join("kapi-folder-1.json")).unwrap();
    let listed = list(&host.status_dir()).unwrap();
    let ids: Vec<&str> = listed
        .iter()
        .map(|(_, file)| file.agent_id.as_str())
        .collect();
    assert_eq!(ids, ["1", "2"]);
    forget(one.path()).unwrap();
    forget(one.path()).unwrap();
    assert!(!one.path().exists() && two.path().exists());
    let left = fs::read_dir(host.status_dir().join(".owners"))
        .unwrap()
        .count();
    assert_eq!(left, 2, "the owner and the lock of the other");
    assert!(list(&host.path("nowhere")).unwrap().is_empty());
}

#[test]
fn a_persons_mapping_is_read_with_its_mistakes_named() {
    let host = Host::new();
    let path = host.path("tool-phase-mapping.yaml");
    let check = |text: &str| {
        fs::OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .open(&path)
            .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
            .unwrap();
        mapping_file::load(&path).map_err(|error| error.to_string())
    };
    let mapping = check(
        "version: \"1.0\"\nphase_ranges:\n  testing: [61, 79]\ndefault_category: exploring\n\
         patterns:\n  testing:\n    - \"Bash(mvn test*)\"\n    - \"Bash(./prove:*)\"\n  other:\n    - mcp__*\n",
    )
    .unwrap();
    use crate::rules::phase::ToolCategory;
    assert_eq!(
        mapping.category("Bash", "cd x && ./prove -v"),
        ToolCategory::Testing
    );
    assert_eq!(mapping.category("Bash", "sleep 1"), ToolCategory::Exploring);
    assert_eq!(mapping.range(ToolCategory::Testing).min(), 61);
    let mistakes = [
        ("version: \"2.0\"", "version \"2.0\""),
        ("colour: red", "colour"),
        ("patterns:\n  resting: [Read]", "resting"),
        ("patterns:\n  testing: [\"Bash(\"]", "Bash("),
        ("phase_ranges:\n  testing: [80, 60]", "[80, 60]"),
        ("phase_ranges:\n  testing: [1]", "line 2"),
    ];
    for (text, part) in mistakes {
        let message = check(text).unwrap_err();
        assert!(message.starts_with("read the tool mapping "), "{message}");
        assert!(message.contains(part), "{text}: {message}");
    }
    let missing = mapping_file::load(&host.path("missing"))
        .unwrap_err()
        .to_string();
    assert!(missing.starts_with("find the tool mapping"), "{missing}");
    let folder = mapping_file::load(host.folder.path())
        .unwrap_err()
        .to_string();
    assert!(folder.starts_with("read "), "{folder}");
}
