//! Files that attack whoever brings them into a project: their names, links, kinds and bits.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, symlink};
use std::path::{Path, PathBuf};

use kapi_git::apply::{
    ApplyOffer, ApplyPlan, BaseState, ByteSource, OnConflict, SandboxState, apply,
};

use crate::fixture::{Fixture, everything, git, read, shell, write};

/// Applies files from a directory of an agent's to a project.
fn bring(fixture: &Fixture, project: &Path, offers: &[ApplyOffer]) -> usize {
    let git = git();
    let work = fixture.root().join("work");
    let plan = ApplyPlan {
        git: &git,
        repository: None,
        project,
        work: &work,
        offers,
        select: &[],
        links_out: &BTreeSet::new(),
        on_conflict: OnConflict::Skip,
    };
    apply(&plan).expect("apply").preview.n_obstacles()
}

#[test]
fn a33_names_are_bytes_all_the_way_into_the_project() {
    let fixture = Fixture::new();
    let (upper, project) = (fixture.root().join("upper"), fixture.root().join("project"));
    fs::create_dir_all(&project).expect("create");
    let long = vec![b'n'; 255];
    let names: [&[u8]; 9] = [
        b"-rf",
        b"--force",
        b"a\nb",
        b"tab\t\"q\"\\",
        b"\xff\xfe",
        b" ",
        b":(top)x",
        b"$(touch x)",
        &long,
    ];
    let mut offers = Vec::new();
    for name in names {
        let path = PathBuf::from(OsStr::from_bytes(name));
        write(&upper.join(&path), "x");
        offers.push(ApplyOffer {
            path: path.clone(),
            old: BaseState::Absent,
            new: SandboxState::File {
                source: ByteSource::File {
                    root: upper.clone(),
                    path,
                },
                mode: 0o644,
            },
        });
    }
    assert_eq!(bring(&fixture, &project, &offers), 0);
    assert_eq!(everything(&project), everything(&upper));
}

#[test]
fn a34_a_file_with_two_names_changes_under_one() {
    let fixture = Fixture::new();
    let (upper, project) = (fixture.root().join("upper"), fixture.root().join("project"));
    let other = fixture.root().join("other");
    write(&other, "shared");
    fs::create_dir_all(&project).expect("create");
    fs::hard_link(&other, project.join("a")).expect("link");
    write(&upper.join("a"), "agent");
    write(&upper.join("before"), "shared");
    let source = |name: &str| ByteSource::File {
        root: upper.clone(),
        path: name.into(),
    };
    let offer = ApplyOffer {
        path: "a".into(),
        old: BaseState::File {
            source: source("before"),
            is_executable: false,
        },
        new: SandboxState::File {
            source: source("a"),
            mode: 0o644,
        },
    };
    assert_eq!(bring(&fixture, &project, &[offer]), 0);
    assert_eq!(read(&project.join("a")), "agent");
    assert_eq!(read(&other), "shared");
}

#[test]
fn a35_special_files_and_bits_do_not_come_along() {
    let fixture = Fixture::new();
    let (upper, project) = (fixture.root().join("upper"), fixture.root().join("project"));
    fs::create_dir_all(&project).expect("create");
    write(&upper.join("suid"), "x");
    shell(
        &upper,
        "mkfifo pipe; mknod null c 1 3; mkdir dir; ln -s /etc/passwd link",
    );
    symlink("suid", upper.join("inner")).expect("link");
    let names = ["suid", "pipe", "null", "dir", "link", "inner"];
    let offers = names.map(|name| ApplyOffer {
        path: name.into(),
        old: BaseState::Absent,
        new: SandboxState::File {
            source: ByteSource::File {
                root: upper.clone(),
                path: name.into(),
            },
            mode: 0o7777,
        },
    });
    assert_eq!(bring(&fixture, &project, &offers), 5);
    let found: Vec<PathBuf> = everything(&project).into_keys().collect();
    assert_eq!(found, [PathBuf::from("suid")]);
    let mode = fs::metadata(project.join("suid")).expect("look").mode();
    assert_eq!(mode & 0o7777, 0o755);
}
