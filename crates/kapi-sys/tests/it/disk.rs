//! The real disk: what it does, what it refuses, how its errors read.
//!
//! What it has in common with the simulated one is tested in `disk_parity`.

use std::error::Error as _;
use std::fs::{create_dir, hard_link, read, symlink_metadata};
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};
use std::thread;

use kapi_sys::disk::{Disk as _, create_dir_durably, replace_derived, replace_durably};
use kapi_sys::real_disk::RealDisk;

use crate::support::put;

#[test]
fn of_many_that_create_a_directory_exactly_one_is_told_so() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..50 {
        let path = directory.path().join(format!("deep-{round}/{round}"));
        let n_new = thread::scope(|scope| {
            let create = || RealDisk.create_dir(&path).unwrap();
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(create)).collect();
            threads
                .into_iter()
                .map(|t| usize::from(t.join().unwrap()))
                .sum::<usize>()
        });
        assert_eq!(n_new, 1);
    }
}

#[test]
fn many_files_are_measured_as_each_is_alone() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    create_dir(root.join("deep")).unwrap();
    put(&root.join("deep/file"), b"12345");
    put(&root.join("empty"), b"");
    symlink(root.join("deep/file"), root.join("link")).unwrap();
    symlink(root.join("gone"), root.join("dangling")).unwrap();
    let files = [
        "deep/file",
        "empty",
        "link",
        "dangling",
        "missing",
        "no/such",
        "empty/below",
        "deep",
    ]
    .map(PathBuf::from);
    for dir in [root.to_path_buf(), root.join("missing"), root.join("empty")] {
        let together = RealDisk.lens(&dir, &files);
        assert_eq!(together.len(), files.len());
        for (file, found) in files.iter().zip(together) {
            let alone = RealDisk.len(&dir.join(file));
            assert_eq!(format!("{found:?}"), format!("{alone:?}"));
        }
    }
}

#[test]
fn thousands_of_files_are_measured_in_their_order() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    for n_files in [0, 1, 256, 257, 1_025] {
        let files: Vec<PathBuf> = (0..n_files).map(|n| format!("{n}").into()).collect();
        for (n, file) in files.iter().enumerate().filter(|(n, _)| n % 3 != 0) {
            put(&root.join(file), &vec![b'x'; n % 7]);
        }
        let found = RealDisk.lens(root, &files);
        assert_eq!(found.len(), n_files);
        for (n, found) in found.into_iter().enumerate() {
            let expected = (n % 3 != 0).then_some(n as u64 % 7);
            assert_eq!(found.unwrap(), expected, "{n} of {n_files}");
        }
    }
}

#[test]
fn errors_name_the_operation_the_path_and_the_cause() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    put(&root.join("file"), b"12345");
    let (missing, below) = (root.join("no/file"), root.join("file/below"));
    let check = |result: Result<(), kapi_sys::disk::DiskError>, expected: &str| {
        let error = result.unwrap_err();
        let cause = error.source().unwrap();
        let text = format!("{error}: {cause}").replace(root.to_str().unwrap(), "ROOT");
        assert_eq!(text, expected);
    };
    let disk = RealDisk;
    let none = "No such file or directory (os error 2)";
    let not_dir = "Not a directory (os error 20)";
    check(
        disk.append(&missing, b""),
        &format!("append to ROOT/no/file: {none}"),
    );
    check(
        disk.write(&missing, b""),
        &format!("write ROOT/no/file: {none}"),
    );
    check(
        disk.truncate(&missing, 0),
        &format!("truncate ROOT/no/file: {none}"),
    );
    check(disk.sync(&missing), &format!("sync ROOT/no/file: {none}"));
    check(
        disk.rename(&missing, &root.join("x")),
        &format!("rename to ROOT/x: {none}"),
    );
    check(
        disk.read(&below, 0).map(drop),
        &format!("read ROOT/file/below: {not_dir}"),
    );
    check(
        disk.len(&below).map(drop),
        &format!("measure ROOT/file/below: {not_dir}"),
    );
    check(
        disk.list(&root.join("file")).map(drop),
        &format!("list ROOT/file: {not_dir}"),
    );
    check(
        disk.create_dir(&below).map(drop),
        &format!("create directory ROOT/file/below: {not_dir}"),
    );
    let exists = "File exists (os error 17)";
    check(
        disk.create_dir(&root.join("file")).map(drop),
        &format!("create directory ROOT/file: {exists}"),
    );
    let short = "the file is shorter than that";
    check(
        disk.truncate(&root.join("file"), 6),
        &format!("truncate ROOT/file: {short}"),
    );
    check(
        disk.read(root, 0).map(drop),
        "read ROOT: not a regular file",
    );
    check(disk.len(root).map(drop), "measure ROOT: not a regular file");
}

#[test]
fn writing_follows_no_link_and_reading_does() {
    let directory = tempfile::tempdir().unwrap();
    let [target, link] = ["precious", "link"].map(|name| directory.path().join(name));
    put(&target, b"precious");
    symlink(&target, &link).unwrap();
    assert!(RealDisk.write(&link, b"x").is_err());
    assert!(RealDisk.append(&link, b"x").is_err());
    assert!(RealDisk.truncate(&link, 0).is_err());
    assert_eq!(read(&target).unwrap(), b"precious");
    assert_eq!(RealDisk.read(&link, 3).unwrap().unwrap(), b"cious");
    // Replacing goes by name: the link goes, its target stays.
    replace_durably(&RealDisk, &link, b"new").unwrap();
    assert_eq!(read(&target).unwrap(), b"precious");
    assert!(symlink_metadata(&link).unwrap().is_file());
}

#[test]
fn a_planted_pipe_or_device_holds_nobody_up() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = directory.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    for path in [pipe.as_path(), Path::new("/dev/zero")] {
        assert!(RealDisk.read(path, 0).is_err());
        assert!(RealDisk.len(path).is_err());
        assert!(RealDisk.write(path, b"x").is_err());
        assert!(RealDisk.append(path, b"x").is_err());
        assert!(RealDisk.truncate(path, 0).is_err());
        assert!(RealDisk.sync(path).is_err());
    }
}

#[test]
fn replacing_makes_a_new_file_and_leaves_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let [path, witness] = ["state.json", "witness"].map(|name| directory.path().join(name));
    put(&path, b"old and longer");
    hard_link(&path, &witness).unwrap();
    let before = symlink_metadata(&path).unwrap().ino();
    replace_durably(&RealDisk, &path, b"new").unwrap();
    assert_eq!(read(&path).unwrap(), b"new");
    replace_derived(&RealDisk, &path, b"newer").unwrap();
    assert_eq!(read(&path).unwrap(), b"newer");
    assert_eq!(read(&witness).unwrap(), b"old and longer");
    assert_ne!(symlink_metadata(&path).unwrap().ino(), before);
    assert_eq!(
        RealDisk.list(directory.path()).unwrap(),
        ["state.json", "witness"]
    );
}

#[test]
fn a_durable_directory_is_made_below_a_given_one_only() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path();
    assert!(create_dir_durably(&RealDisk, root, &root.join("a/b/c")).unwrap());
    assert!(!create_dir_durably(&RealDisk, root, &root.join("a/b/c")).unwrap());
    create_dir_durably(&RealDisk, root, root).unwrap_err();
    create_dir_durably(&RealDisk, &root.join("a"), &root.join("b")).unwrap_err();
    assert!(!root.join("b").exists());
    create_dir(root.join("b")).unwrap();
}
