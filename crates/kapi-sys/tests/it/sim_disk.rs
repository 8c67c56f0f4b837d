//! The model of power failures: what each survival policy keeps and loses.
//!
//! The crash tests of the whole program stand on this, so each rule has its own test.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kapi_sys::disk::{Disk as _, create_dir_durably, replace_derived, replace_durably};
use kapi_sys::lock::LockError;
use kapi_sys::sim_disk::{Mutation, SimDisk, Survival, is_power_failure};

const LOG: &str = "/d/log";

/// Returns a disk with the durable directory `/d`.
fn disk() -> SimDisk {
    let disk = SimDisk::new();
    disk.provide_dir(Path::new("/d"));
    disk
}

/// Returns a disk whose log is durable with the given text.
fn disk_with_log(text: &str) -> SimDisk {
    let disk = disk();
    disk.append(Path::new(LOG), text.as_bytes()).unwrap();
    disk.sync(Path::new(LOG)).unwrap();
    disk.sync(Path::new("/d")).unwrap();
    disk
}

fn files(entries: &[(&str, &str)]) -> BTreeMap<PathBuf, Vec<u8>> {
    entries
        .iter()
        .map(|(path, text)| (PathBuf::from(path), text.as_bytes().to_vec()))
        .collect()
}

/// Crashes the disk and returns the files that are there afterwards, both visible and durable.
fn after(disk: &SimDisk, survival: Survival) -> BTreeMap<PathBuf, Vec<u8>> {
    disk.crash_now(survival);
    disk.reboot();
    assert_eq!(disk.snapshot(), disk.durable());
    disk.snapshot()
}

#[test]
fn content_needs_a_sync_of_the_file() {
    let case = || {
        let disk = disk_with_log("one\n");
        disk.append(Path::new(LOG), b"two\n").unwrap();
        assert_eq!(disk.durable(), files(&[(LOG, "one\n")]));
        disk
    };
    assert_eq!(after(&case(), Survival::Nothing), files(&[(LOG, "one\n")]));
    assert_eq!(
        after(&case(), Survival::Everything),
        files(&[(LOG, "one\ntwo\n")])
    );
    let synced = case();
    synced.sync(Path::new(LOG)).unwrap();
    assert_eq!(
        after(&synced, Survival::Nothing),
        files(&[(LOG, "one\ntwo\n")])
    );
}

#[test]
fn a_torn_append_may_keep_any_prefix_and_nothing_else() {
    let seen: BTreeSet<Vec<u8>> = (0..200)
        .map(|seed| {
            let disk = disk_with_log("one\n");
            disk.append(Path::new(LOG), b"two\n").unwrap();
            after(&disk, Survival::TornPrefix(seed))
                .remove(Path::new(LOG))
                .unwrap()
        })
        .collect();
    let prefixes: BTreeSet<Vec<u8>> = (4..=8).map(|len| b"one\ntwo\n"[..len].to_vec()).collect();
    assert_eq!(seen, prefixes);
}

#[test]
fn the_same_seed_tears_the_same_way() {
    let torn = |seed| {
        let disk = disk_with_log("");
        for n in 0..20 {
            disk.append(Path::new(LOG), format!("line {n}\n").as_bytes())
                .unwrap();
            disk.append(Path::new(&format!("/d/{n}")), b"other")
                .unwrap();
        }
        after(&disk, Survival::TornPrefix(seed))
    };
    assert_eq!(torn(7), torn(7));
    assert_ne!(torn(7), torn(8));
}

#[test]
fn a_name_needs_a_sync_of_its_directory() {
    let case = || {
        let disk = disk();
        disk.append(Path::new(LOG), b"one\n").unwrap();
        disk.sync(Path::new(LOG)).unwrap();
        disk
    };
    assert_eq!(after(&case(), Survival::Nothing), files(&[]));
    assert_eq!(
        after(&case(), Survival::Everything),
        files(&[(LOG, "one\n")])
    );
    // The name may come through by itself; then the synced content is behind it.
    let seen: BTreeSet<_> = (0..50)
        .map(|seed| after(&case(), Survival::TornPrefix(seed)))
        .collect();
    assert_eq!(seen, BTreeSet::from([files(&[]), files(&[(LOG, "one\n")])]));
}

#[test]
fn a_name_may_survive_without_its_content() {
    let disk = disk();
    disk.write(Path::new(LOG), b"one\n").unwrap();
    disk.sync(Path::new("/d")).unwrap();
    assert_eq!(after(&disk, Survival::Nothing), files(&[(LOG, "")]));
}

#[test]
fn a_directory_that_is_lost_takes_its_files_along() {
    let case = || {
        let disk = SimDisk::new();
        assert!(disk.create_dir(Path::new("/a/b")).unwrap());
        disk.append(Path::new("/a/b/f"), b"x").unwrap();
        disk.sync(Path::new("/a/b/f")).unwrap();
        disk.sync(Path::new("/a/b")).unwrap();
        disk
    };
    assert_eq!(after(&case(), Survival::Nothing), files(&[]));
    let half = case();
    half.sync(Path::new("/")).unwrap();
    assert_eq!(after(&half, Survival::Nothing), files(&[]));
    assert_eq!(half.list(Path::new("/")).unwrap(), ["a"]);
    let whole = case();
    assert!(!create_dir_durably(&whole, Path::new("/"), Path::new("/a/b")).unwrap());
    assert_eq!(after(&whole, Survival::Nothing), files(&[("/a/b/f", "x")]));
}

#[test]
fn a_derived_replacement_may_be_old_new_empty_or_torn_and_a_durable_one_is_new() {
    let derived = || {
        let disk = disk_with_log("old");
        replace_derived(&disk, Path::new(LOG), b"new").unwrap();
        disk
    };
    assert_eq!(after(&derived(), Survival::Nothing), files(&[(LOG, "old")]));
    assert_eq!(
        after(&derived(), Survival::Everything),
        files(&[(LOG, "new")])
    );
    let seen: BTreeSet<Vec<u8>> = (0..300)
        .map(|seed| {
            after(&derived(), Survival::TornPrefix(seed))
                .remove(Path::new(LOG))
                .unwrap()
        })
        .collect();
    let possible = ["old", "", "n", "ne", "new"].map(|text| text.as_bytes().to_vec());
    assert_eq!(seen, BTreeSet::from(possible));

    for seed in 0..50 {
        let disk = disk_with_log("old");
        replace_durably(&disk, Path::new(LOG), b"new").unwrap();
        assert_eq!(
            after(&disk, Survival::TornPrefix(seed)),
            files(&[(LOG, "new")])
        );
    }
}

#[test]
fn a_durable_replacement_is_old_or_new_wherever_the_power_fails() {
    let survivals = [Survival::Nothing, Survival::Everything, Survival::PageCache];
    for survival in survivals
        .into_iter()
        .chain((0..20).map(Survival::TornPrefix))
    {
        for op in 0.. {
            let disk = disk_with_log("old");
            disk.crash_at(disk.ops() + op, survival);
            let is_done = replace_durably(&disk, Path::new(LOG), b"new").is_ok();
            assert_eq!(is_done, !disk.is_crashed());
            disk.reboot();
            let text = disk.snapshot().remove(Path::new(LOG)).unwrap();
            let possible: &[&[u8]] = if is_done {
                &[b"new"]
            } else {
                &[b"old", b"new"]
            };
            assert!(
                possible.contains(&text.as_slice()),
                "{survival:?} at {op}: {text:?}"
            );
            if is_done {
                assert_eq!(op, 4, "write, sync, rename, sync");
                break;
            }
        }
    }
}

#[test]
fn a_truncation_needs_a_sync_too() {
    let case = || {
        let disk = disk_with_log("one\ntw");
        disk.truncate(Path::new(LOG), 4).unwrap();
        assert_eq!(disk.snapshot(), files(&[(LOG, "one\n")]));
        disk
    };
    assert_eq!(
        after(&case(), Survival::Nothing),
        files(&[(LOG, "one\ntw")])
    );
    assert_eq!(
        after(&case(), Survival::Everything),
        files(&[(LOG, "one\n")])
    );
    let seen: BTreeSet<_> = (0..50)
        .map(|seed| after(&case(), Survival::TornPrefix(seed)))
        .collect();
    assert_eq!(
        seen,
        BTreeSet::from([files(&[(LOG, "one\n")]), files(&[(LOG, "one\ntw")])])
    );
}

#[test]
fn a_killed_process_leaves_everything_visible_and_nothing_more_durable() {
    let disk = disk_with_log("one\n");
    disk.append(Path::new(LOG), b"two\n").unwrap();
    disk.crash_now(Survival::PageCache);
    disk.reboot();
    assert_eq!(disk.snapshot(), files(&[(LOG, "one\ntwo\n")]));
    assert_eq!(disk.durable(), files(&[(LOG, "one\n")]));
    // The next power failure may take what the killed process had not synced.
    assert_eq!(after(&disk, Survival::Nothing), files(&[(LOG, "one\n")]));
}

#[test]
fn operations_are_numbered_from_zero_over_all_reboots() {
    let disk = disk();
    let log = Path::new(LOG);
    assert_eq!(disk.ops(), 0);
    disk.crash_at(2, Survival::Everything);
    disk.append(log, b"a").unwrap();
    assert_eq!(disk.read(log, 0).unwrap().unwrap(), b"a");
    assert_eq!(disk.len(log).unwrap(), Some(1));
    disk.sync(log).unwrap();
    assert_eq!(disk.ops(), 2);
    assert!(!disk.is_crashed());
    disk.append(log, b"b").unwrap_err();
    assert!(disk.is_crashed());
    disk.reboot();
    assert_eq!((disk.ops(), disk.is_crashed()), (2, false));
    assert_eq!(disk.snapshot(), files(&[(LOG, "a")]));
    disk.append(log, b"c").unwrap();
    assert_eq!(disk.ops(), 3);
}

#[test]
fn without_power_every_call_fails_recognisably() {
    let disk = disk_with_log("x");
    let held = disk.lock(Path::new("/d/lock"), "before", 0).unwrap();
    disk.crash_now(Survival::Nothing);
    let (log, dir) = (Path::new(LOG), Path::new("/d"));
    let errors = [
        disk.read(log, 0).unwrap_err(),
        disk.len(log).unwrap_err(),
        disk.list(dir).unwrap_err(),
        disk.create_dir(dir).unwrap_err(),
        disk.write(log, b"").unwrap_err(),
        disk.append(log, b"").unwrap_err(),
        disk.truncate(log, 0).unwrap_err(),
        disk.sync(log).unwrap_err(),
        disk.rename(log, log).unwrap_err(),
    ];
    for error in &errors {
        assert!(is_power_failure(&error.source), "{error:?}");
        assert_eq!(error.source.to_string(), "simulated power failure");
    }
    let refused = disk.lock(Path::new("/d/lock"), "after", 0);
    assert!(matches!(refused, Err(LockError::Failed { source, .. }) if is_power_failure(&source)));
    disk.reboot();
    // The dead holder's value goes out of scope late; it must not release its successor's lock.
    let successor = disk.lock(Path::new("/d/lock"), "successor", 0).unwrap();
    drop(held);
    let refused = disk.lock(Path::new("/d/lock"), "third", 0).unwrap_err();
    assert_eq!(refused.to_string(), "lock /d/lock, held by successor");
    drop(successor);
    assert!(!is_power_failure(
        &disk.sync(Path::new("/none")).unwrap_err().source
    ));
}

#[test]
fn a_lock_excludes_and_its_file_is_an_operation_only_once() {
    let disk = disk();
    let path = Path::new("/d/new/lock");
    let first = disk.lock(path, "first", 0).unwrap();
    assert_eq!(disk.ops(), 1);
    assert!(matches!(
        disk.lock(path, "second", 0),
        Err(LockError::Busy { .. })
    ));
    drop(first);
    drop(disk.clone().lock(path, "second", 0).unwrap());
    assert_eq!(disk.ops(), 1);
    assert!(
        !disk.create_dir(Path::new("/d/new")).unwrap(),
        "the lock has made it"
    );
}

#[test]
fn each_mutation_does_the_damage_it_promises() {
    let log = Path::new(LOG);
    let disk = disk_with_log("one\n");
    disk.set_mutation(Mutation::SkipFileSync);
    disk.append(log, b"two\n").unwrap();
    disk.sync(log).unwrap();
    assert_eq!(disk.durable(), files(&[(LOG, "one\n")]));

    disk.set_mutation(Mutation::SkipDirSync);
    disk.sync(log).unwrap();
    replace_durably(&disk, log, b"new").unwrap();
    assert_eq!(disk.durable(), files(&[(LOG, "one\ntwo\n")]));

    disk.set_mutation(Mutation::SkipTruncate);
    disk.truncate(log, 0).unwrap();
    assert_eq!(disk.snapshot(), files(&[(LOG, "new")]));
}

#[test]
fn a_delayed_append_comes_with_the_next_one_or_never() {
    let log = Path::new(LOG);
    let delayed = || {
        let disk = disk_with_log("");
        disk.set_mutation(Mutation::DelayAppendMatching("intent".into()));
        disk.append(log, b"an intent\n").unwrap();
        disk.sync(log).unwrap();
        assert_eq!(disk.snapshot(), files(&[(LOG, "")]));
        disk
    };
    let disk = delayed();
    disk.append(log, b"outcome\n").unwrap();
    assert_eq!(disk.snapshot(), files(&[(LOG, "an intent\noutcome\n")]));
    let disk = delayed();
    disk.append(Path::new("/d/other"), b"x").unwrap();
    assert_eq!(
        disk.snapshot(),
        files(&[(LOG, "an intent\n"), ("/d/other", "x")])
    );
    assert_eq!(after(&delayed(), Survival::Everything), files(&[(LOG, "")]));
}
