//! Names that never mean two runs, and runs that give way.

use std::path::Path;
use std::{fs, thread};

use super::{Host, read};
use crate::perform::writer::{LaunchCompletion, StatusUpdate, list};

fn name(path: &Path) -> &str {
    path.file_name().unwrap().to_str().unwrap()
}

#[test]
fn names_that_would_mean_two_runs_are_told_apart() {
    let host = Host::new();
    let first = host.writer("a", "b-c");
    let second = host.writer("a-b", "c");
    assert_eq!(name(first.path()), "kapi-a-b-c.json");
    assert_ne!(second.path(), first.path());
    assert!(
        name(second.path()).starts_with("kapi-a-b.") && name(second.path()).ends_with("-c.json")
    );
    let api = host.writer_at("api", "1", Path::new("/one/api"));
    let other_api = host.writer_at("api", "1", Path::new("/two/api"));
    assert_ne!(api.path(), other_api.path());
    api.note("one").unwrap();
    other_api.note("two").unwrap();
    assert_eq!(read(api.path()).message, "one");
    assert_eq!(read(other_api.path()).message, "two");
    assert_eq!(list(&host.status_dir()).unwrap().len(), 4);
}

#[test]
fn names_stay_in_their_directory() {
    let host = Host::new();
    let hostile = [
        ("../../etc/x", "1"),
        ("/abs", "2"),
        ("..", "../../up"),
        ("", ""),
        ("a\nb\0c", "\u{202e}"),
        ("x", &"9".repeat(500)),
        ("ü", "$(id)"),
    ];
    for (project, id) in hostile {
        let writer = host.writer(project, id);
        assert_eq!(writer.path().parent(), Some(host.status_dir().as_path()));
        assert!(
            name(writer.path()).starts_with("kapi-"),
            "{:?}",
            writer.path()
        );
        assert!(name(writer.path()).len() <= 160, "{:?}", writer.path());
        assert!(name(writer.path()).is_ascii());
    }
    assert_eq!(list(&host.status_dir()).unwrap().len(), hostile.len());
    let above = fs::read_dir(host.folder.path()).unwrap().count();
    assert_eq!(above, 1, "nothing was made outside");
}

#[test]
fn an_older_run_writes_no_more_when_a_newer_has_its_file() {
    let host = Host::new();
    let older = host.writer("p", "1");
    older.tool("Write", "x").unwrap();
    let newer = host.writer("p", "1");
    assert_eq!(newer.path(), older.path());
    let begun = read(newer.path());
    let end = LaunchCompletion {
        exit_code: 0,
        error: None,
        class: None,
        advice: None,
        pr_url: None,
    };
    assert_eq!(older.note("still here").unwrap(), StatusUpdate::Superseded);
    assert_eq!(older.complete(&end).unwrap(), StatusUpdate::Superseded);
    assert_eq!(read(newer.path()), begun);
    assert_eq!(newer.note("mine").unwrap(), StatusUpdate::Written);
}

#[test]
fn runs_that_begin_at_once_end_with_one_owner() {
    let host = Host::new();
    let writers: Vec<_> = thread::scope(|scope| {
        let begun: Vec<_> = (0..8)
            .map(|_| scope.spawn(|| host.writer("p", "1")))
            .collect();
        begun
            .into_iter()
            .map(|handle| handle.join().unwrap())
            .collect()
    });
    let results: Vec<StatusUpdate> = writers
        .iter()
        .map(|writer| writer.note("x").unwrap())
        .collect();
    let n_owners = results
        .iter()
        .filter(|written| **written == StatusUpdate::Written)
        .count();
    assert_eq!(n_owners, 1, "{results:?}");
}

#[test]
fn what_lies_in_the_way_is_replaced_and_never_followed() {
    let host = Host::new();
    let dir = host.status_dir();
    fs::create_dir(&dir).unwrap();
    let precious = host.path("precious");
    fs::File::create(&precious).unwrap();
    std::os::unix::fs::symlink(&precious, dir.join("kapi-p-1.json")).unwrap();
    std::os::unix::fs::symlink(&precious, dir.join(".kapi-p-1.json.new")).unwrap();
    let writer = host.writer("p", "1");
    writer.note("x").unwrap();
    assert_eq!(fs::metadata(&precious).unwrap().len(), 0);
    assert!(fs::symlink_metadata(writer.path()).unwrap().is_file());
}

#[test]
fn a_broken_owner_file_is_taken_over() {
    let host = Host::new();
    let first = host.writer("p", "1");
    let owner = host.status_dir().join(".owners/kapi-p-1.json.owner");
    fs::File::create(&owner).unwrap();
    let second = host.writer("p", "1");
    assert_eq!(second.path(), first.path());
    assert_eq!(first.note("x").unwrap(), StatusUpdate::Superseded);
}
