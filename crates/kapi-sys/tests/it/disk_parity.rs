//! The simulated disk against the real one: the same calls give the same answers.
//!
//! Without this, a crash test would prove something about a disk that does not exist.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use kapi_sys::disk::{Disk, DiskError};
use kapi_sys::real_disk::RealDisk;
use kapi_sys::sim_disk::SimDisk;
use proptest::collection::vec;
use proptest::prelude::{Just, ProptestConfig, Strategy};
use proptest::{prop_assert_eq, prop_oneof, proptest};

#[derive(Debug, Clone)]
enum Call {
    Read(PathBuf, u64),
    Len(PathBuf),
    List(PathBuf),
    CreateDir(PathBuf),
    Write(PathBuf, Vec<u8>),
    Append(PathBuf, Vec<u8>),
    Truncate(PathBuf, u64),
    Sync(PathBuf),
    Rename(PathBuf, PathBuf),
    Lock(PathBuf),
}

/// Does a call and renders what came back; of an error only that it is one.
fn answer(disk: &dyn Disk, root: &Path, call: &Call) -> String {
    let show = |result: Result<String, DiskError>| result.unwrap_or_else(|_| String::from("error"));
    match call {
        Call::Read(path, from) => {
            show(disk.read(&root.join(path), *from).map(|b| format!("{b:?}")))
        }
        Call::Len(path) => show(disk.len(&root.join(path)).map(|len| format!("{len:?}"))),
        Call::List(path) => show(
            disk.list(&root.join(path))
                .map(|names| format!("{names:?}")),
        ),
        Call::CreateDir(path) => show(disk.create_dir(&root.join(path)).map(|new| new.to_string())),
        Call::Write(path, bytes) => show(disk.write(&root.join(path), bytes).map(|()| "ok".into())),
        Call::Append(path, bytes) => {
            show(disk.append(&root.join(path), bytes).map(|()| "ok".into()))
        }
        Call::Truncate(path, len) => {
            show(disk.truncate(&root.join(path), *len).map(|()| "ok".into()))
        }
        Call::Sync(path) => show(disk.sync(&root.join(path)).map(|()| "ok".into())),
        Call::Rename(from, to) => show(
            disk.rename(&root.join(from), &root.join(to))
                .map(|()| "ok".into()),
        ),
        Call::Lock(path) => match disk.lock(&root.join(path), "parity", 0) {
            Ok(_) => String::from("ok"),
            Err(_) => String::from("error"),
        },
    }
}

fn path() -> impl Strategy<Value = PathBuf> {
    let name = || prop_oneof![Just("a"), Just("b"), Just("c")];
    vec(name(), 1..4).prop_map(|names| names.iter().collect())
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(0..4_u8, 0..6)
}

fn call() -> impl Strategy<Value = Call> {
    prop_oneof![
        (path(), 0..8_u64).prop_map(|(path, from)| Call::Read(path, from)),
        path().prop_map(Call::Len),
        path().prop_map(Call::List),
        path().prop_map(Call::CreateDir),
        (path(), bytes()).prop_map(|(path, bytes)| Call::Write(path, bytes)),
        (path(), bytes()).prop_map(|(path, bytes)| Call::Append(path, bytes)),
        (path(), 0..8_u64).prop_map(|(path, len)| Call::Truncate(path, len)),
        path().prop_map(Call::Sync),
        (path(), path()).prop_map(|(from, to)| Call::Rename(from, to)),
        path().prop_map(Call::Lock),
    ]
}

/// Tells whether the call would move a directory, which only the real disk can.
fn moves_directory(real: &Path, call: &Call) -> bool {
    matches!(call, Call::Rename(from, _) if real.join(from).is_dir())
}

/// Tells whether a lock would be taken on a file that has content, which a real lock overwrites.
fn overwrites(real: &Path, call: &Call) -> bool {
    matches!(call, Call::Lock(path) if real.join(path).is_file())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn both_disks_answer_alike(calls in vec(call(), 1..40)) {
        let directory = tempfile::tempdir().unwrap();
        let simulated = SimDisk::new();
        let (real_root, simulated_root) = (directory.path(), Path::new("/"));
        let mut locked = Vec::new();
        for call in calls {
            if moves_directory(real_root, &call) || overwrites(real_root, &call) {
                continue;
            }
            let expected = answer(&RealDisk, real_root, &call);
            prop_assert_eq!(answer(&simulated, simulated_root, &call), expected, "{:?}", call);
            if let Call::Lock(path) = call {
                // The real lock left its owner in the file; the simulated one leaves it empty.
                if real_root.join(&path).is_file() {
                    RealDisk.write(&real_root.join(&path), b"").unwrap();
                    locked.push(path);
                }
            }
        }
        let real: BTreeMap<PathBuf, Vec<u8>> = simulated
            .snapshot()
            .into_keys()
            .map(|path| {
                let real_path = real_root.join(path.strip_prefix("/").unwrap());
                let bytes = RealDisk.read(&real_path, 0).unwrap().unwrap();
                (path, bytes)
            })
            .collect();
        prop_assert_eq!(simulated.snapshot(), real);
    }
}
