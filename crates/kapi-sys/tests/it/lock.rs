//! Locks, between calls of one process and between real processes.
//!
//! Knows nothing of what a lock protects.

use std::fs::{read, read_to_string, remove_file};
use std::os::unix::fs::symlink;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kapi_sys::lock::{Lock, LockDirectory, LockError};

use crate::support::{Background, await_line, put};

fn busy_owner(path: &Path) -> String {
    match Lock::acquire(path, "a second one", 0) {
        Err(LockError::Busy { owner, .. }) => owner,
        other => panic!("not busy: {other:?}"),
    }
}

#[test]
fn it_excludes_a_second_call_and_ends_with_the_value() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/below/lock");
    let me = format!("pid {}, kapi run", std::process::id());
    let lock = Lock::acquire(&path, "kapi run", 0).unwrap();
    assert_eq!(read_to_string(&path).unwrap(), me);
    assert_eq!(busy_owner(&path), me);
    assert_eq!(Lock::holder(&path).unwrap(), Some(me.clone()));
    drop(lock);
    assert_eq!(Lock::holder(&path).unwrap(), None);
    let again = Lock::acquire(&path, "x", 0).unwrap();
    assert_eq!(
        read_to_string(&path).unwrap(),
        format!("pid {}, x", std::process::id())
    );
    drop(again);
}

#[test]
fn asking_for_the_holder_makes_no_file() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lock");
    assert_eq!(Lock::holder(&path).unwrap(), None);
    assert_eq!(
        Lock::holder(&directory.path().join("no/such/directory")).unwrap(),
        None
    );
    assert!(!path.exists());
}

#[test]
fn many_are_asked_from_one_directory_as_each_is_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name);
    put(&path("free"), b"pid 1, long gone");
    put(&path("target"), b"precious");
    symlink(path("target"), path("link")).unwrap();
    std::fs::create_dir(path("deep")).unwrap();
    let held = Lock::acquire(&path("deep/held"), "kapi run", 0).unwrap();
    let asked = LockDirectory::open(directory.path()).unwrap();
    for name in [
        "free",
        "missing",
        "deep/held",
        "deep/missing",
        "no/such/one",
    ] {
        let alone = Lock::holder(&path(name)).unwrap();
        assert_eq!(asked.holder(Path::new(name)).unwrap(), alone, "{name}");
    }
    for name in ["link", "deep"] {
        let error = asked.holder(Path::new(name)).unwrap_err();
        assert_eq!(error.to_string(), format!("lock {}", path(name).display()));
    }
    drop(held);
    assert_eq!(asked.holder(Path::new("deep/held")).unwrap(), None);
    let missing = LockDirectory::open(&path("missing")).unwrap();
    assert_eq!(missing.holder(Path::new("held")).unwrap(), None);
    assert!(LockDirectory::open(&path("free")).is_err());
}

#[test]
fn asking_for_the_holder_never_makes_a_taker_fail() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lock");
    put(&path, b"");
    thread::scope(|scope| {
        let asker = scope.spawn(|| {
            for _ in 0..2000 {
                Lock::holder(&path).unwrap();
            }
        });
        while !asker.is_finished() {
            drop(Lock::acquire(&path, "taker", 0).unwrap());
        }
    });
}

#[test]
fn shares_exclude_a_taker_and_nothing_else() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("deep/lock");
    let [one, other] = [(); 2].map(|()| Lock::share(&path).unwrap());
    assert_eq!(Lock::holder(&path).unwrap(), None);
    drop(one);
    assert_eq!(busy_owner(&path), "another process");
    thread::scope(|scope| {
        let taker = scope.spawn(|| Lock::acquire(&path, "taker", 20_000));
        drop(other);
        let taken = taker.join().unwrap().unwrap();
        let error = Lock::share(&path).unwrap_err();
        assert!(error.to_string().ends_with("taker"), "{error}");
        drop(taken);
    });
}

#[test]
fn waiting_ends_at_its_limit_and_names_lock_and_owner() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lock");
    let _held = Lock::acquire(&path, "kapi\u{1b}[31m run\n", 0).unwrap();
    let started = Instant::now();
    let error = Lock::acquire(&path, "late", 120).unwrap_err();
    assert!(started.elapsed() >= Duration::from_millis(120));
    assert!(started.elapsed() < Duration::from_secs(120));
    let expected = format!(
        "lock {}, held by pid {}, kapi [31m run",
        path.display(),
        std::process::id()
    );
    assert_eq!(error.to_string(), expected);
}

#[test]
fn another_process_holds_it_until_it_dies() {
    let directory = tempfile::tempdir().unwrap();
    let [path, ready] = ["lock", "ready"].map(|name| directory.path().join(name));
    let [lock, reported] = [&path, &ready].map(|path| path.to_str().unwrap());
    let mut peer = Background::peer(&["hold-lock", lock, "the peer", reported]);
    await_line(&ready);
    let owner = format!("pid {}, the peer", peer.pid().as_raw_pid());
    assert_eq!(busy_owner(&path), owner);
    assert_eq!(Lock::holder(&path).unwrap(), Some(owner.clone()));
    thread::scope(|scope| {
        let waiter = scope.spawn(|| Lock::acquire(&path, "the heir", 20_000));
        peer.kill();
        drop(waiter.join().unwrap().unwrap());
    });
    assert_eq!(Lock::holder(&path).unwrap(), None);
}

#[test]
fn four_processes_counting_lose_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let [path, counter] = ["lock", "counter"].map(|name| directory.path().join(name));
    put(&counter, b"0");
    let [lock, count] = [&path, &counter].map(|path| path.to_str().unwrap());
    let role = ["count-up", lock, count, "100"];
    let mut peers: Vec<Background> = (0..4).map(|_| Background::peer(&role)).collect();
    for peer in &mut peers {
        assert!(peer.0.wait().unwrap().success());
    }
    assert_eq!(read_to_string(&counter).unwrap(), "400");
}

#[test]
fn a_planted_link_or_pipe_is_refused_and_its_target_untouched() {
    let directory = tempfile::tempdir().unwrap();
    let [path, target] = ["lock", "precious"].map(|name| directory.path().join(name));
    put(&target, b"precious");
    symlink(&target, &path).unwrap();
    assert!(matches!(
        Lock::acquire(&path, "x", 0),
        Err(LockError::Failed { .. })
    ));
    assert!(matches!(Lock::holder(&path), Err(LockError::Failed { .. })));
    assert_eq!(read(&target).unwrap(), b"precious");
    remove_file(&path).unwrap();
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &path,
        rustix::fs::FileType::Fifo,
        0o600.into(),
        0,
    )
    .unwrap();
    assert!(matches!(
        Lock::acquire(&path, "x", 0),
        Err(LockError::Failed { .. })
    ));
}

#[test]
fn a_holder_that_removes_the_file_does_not_split_the_lock() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("lock");
    let is_inside = AtomicBool::new(false);
    let enter_and_leave = || {
        for _ in 0..500 {
            let lock = Lock::acquire(&path, "remover", 20_000).unwrap();
            assert!(!is_inside.swap(true, Ordering::SeqCst), "two are inside");
            thread::yield_now();
            is_inside.store(false, Ordering::SeqCst);
            // Whoever has opened the file and waits for it must notice that it is gone.
            remove_file(&path).unwrap();
            drop(lock);
        }
    };
    thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(enter_and_leave);
        }
    });
}

#[test]
fn a_lock_that_excludes_nobody_touches_nothing() {
    drop(Lock::unheld());
}
