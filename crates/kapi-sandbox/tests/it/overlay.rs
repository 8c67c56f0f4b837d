//! Copy-on-write workspaces: what is written lands in the layer, and the project never changes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use crate::request::Request;
use crate::workplace::{Workplace, as_each_user};

/// A project of the user's, with a file of each kind.
fn project(place: &Workplace) {
    for directory in ["lower", "lower/src", "lower/docs", "lower/docs/deep"] {
        place.directory(directory);
    }
    place.file("lower/readme", "one\n");
    place.file("lower/src/main", "two\n");
    place.file("lower/docs/page", "three\n");
    place.file("lower/docs/deep/leaf", "four\n");
    place.file("lower/run.sh", "#!/bin/sh\necho ran\n");
    std::os::unix::fs::symlink("readme", place.path("lower/link")).unwrap();
    for layer in ["upper", "scratch"] {
        place.directory(layer);
    }
}

/// A shell line over the project; `lower` is made at `/workspace`.
fn over(place: &Workplace, line: &str) -> Request {
    let mut request = place.shell(line);
    let layer = format!("cow:{}:{}", place.text("upper"), place.text("scratch"));
    request.mounts = vec![(place.text("lower"), "/workspace".to_owned(), layer)];
    request
}

fn check_output(place: &Workplace, line: &str, expected: &str) {
    let reply = place.run(&over(place, line));
    assert_eq!(
        (
            reply.end.as_str(),
            reply.stdout.as_str(),
            reply.stderr.as_str()
        ),
        ("Exited(0)", expected, ""),
        "{line}"
    );
}

/// Everything about a tree that a write would change; of times, the modification to the nanosecond.
fn portrait(tree: &Path) -> BTreeMap<String, String> {
    let mut known = BTreeMap::new();
    let mut left = vec![tree.to_path_buf()];
    while let Some(path) = left.pop() {
        let found = fs::symlink_metadata(&path).unwrap();
        let content = if found.is_dir() {
            left.extend(
                fs::read_dir(&path)
                    .unwrap()
                    .map(|entry| entry.unwrap().path()),
            );
            String::new()
        } else if found.is_symlink() {
            fs::read_link(&path).unwrap().display().to_string()
        } else {
            fs::read_to_string(&path).unwrap()
        };
        let facts = format!(
            "{:o} {} {} {}.{:09} {} {content}",
            found.mode(),
            found.uid(),
            found.ino(),
            found.mtime(),
            found.mtime_nsec(),
            found.nlink(),
        );
        known.insert(path.display().to_string(), facts);
    }
    known
}

#[test]
fn writes_land_in_the_layer_and_the_project_stays_as_it_is() {
    as_each_user(|place| {
        project(place);
        let before = portrait(&place.path("lower"));
        let line = "echo more >> readme; mkdir new; echo n > new/file; rm src/main; rm -r docs; \
                    mkdir docs; echo fresh > docs/page; ln -sfn new link; chmod +x src; chmod 755 run.sh; \
                    touch -d 2001-01-01 run.sh; ./run.sh; ls";
        check_output(place, line, "ran\ndocs\nlink\nnew\nreadme\nrun.sh\nsrc\n");
        assert_eq!(portrait(&place.path("lower")), before);

        let upper = |name: &str| place.path("upper").join(name);
        assert_eq!(fs::read_to_string(upper("readme")).unwrap(), "one\nmore\n");
        assert_eq!(fs::read_to_string(upper("new/file")).unwrap(), "n\n");
        assert_eq!(fs::read_link(upper("link")).unwrap(), Path::new("new"));
        assert_eq!(
            fs::metadata(upper("run.sh")).unwrap().permissions().mode() & 0o777,
            0o755
        );
        let whiteout = fs::symlink_metadata(upper("src/main")).unwrap();
        assert!(whiteout.file_type().is_char_device() && whiteout.rdev() == 0);
        let mut mark = [0_u8; 8];
        let n = rustix::fs::getxattr(upper("docs"), "user.overlay.opaque", &mut mark[..]).unwrap();
        assert_eq!(&mark[..n], b"y");
    });
}

#[test]
fn a_second_run_goes_on_where_the_first_stopped() {
    as_each_user(|place| {
        project(place);
        check_output(place, "echo kept > left; rm readme", "");
        check_output(
            place,
            "cat left; ls readme 2>/dev/null || echo gone",
            "kept\ngone\n",
        );
        // Also after a run that was killed in the middle of writing.
        let mut killed = over(place, "echo torn > torn; kill -9 $$");
        killed.deadline_ms = 5_000;
        assert_eq!(place.run(&killed).end, "Signaled(9)");
        assert!(
            place.path("scratch/work").exists(),
            "what forbids the next mount"
        );
        check_output(place, "cat torn left", "torn\nkept\n");
    });
}

#[test]
fn a_directory_of_the_project_can_be_renamed_and_an_overlay_s_own_marks_cannot_be_forged() {
    as_each_user(|place| {
        project(place);
        let line = "mv docs papers && cat papers/deep/leaf && ls -d docs 2>/dev/null; \
                    python3 -c 'import os; os.setxattr(\"src\", \"user.overlay.opaque\", b\"y\")' 2>/dev/null; \
                    cat src/main";
        check_output(place, line, "four\ntwo\n");
        check_output(place, "cat papers/page src/main", "three\ntwo\n");
        assert_eq!(
            fs::read_to_string(place.path("lower/docs/deep/leaf")).unwrap(),
            "four\n"
        );
    });
}

#[test]
fn a_layer_belongs_to_one_sandbox_at_a_time() {
    as_each_user(|place| {
        project(place);
        let held = fs::File::open(place.path("upper")).unwrap();
        let exclusive = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::flock(&held, exclusive).unwrap();
        let reply = place.run(&over(place, "echo never"));
        let expected = format!(
            "set up the sandbox: flock on {}, which another sandbox uses: Device or resource busy (os error 16)",
            place.text("upper")
        );
        assert_eq!(reply.end, expected);
        drop(held);
        check_output(place, "echo now", "now\n");
        // And it is free again at once when a run has returned.
        for _ in 0..5 {
            check_output(place, "true", "");
        }
    });
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    as_each_user(|place| {
        project(place);
        for name in ["lower", "upper", "scratch"] {
            let away = place.path("away");
            fs::rename(place.path(name), &away).unwrap();
            let reply = place.run(&over(place, "true"));
            let expected = format!(
                "set up the sandbox: open on {}: No such file or directory (os error 2)",
                place.text(name)
            );
            assert_eq!(reply.end, expected);
            fs::rename(&away, place.path(name)).unwrap();
        }
        place.directory("lower/upper");
        check_layer(place, "lower/upper", "scratch", |place| {
            format!(
                "set up the sandbox: overlay on {}, which lies inside {}: Invalid argument (os error 22)",
                place.text("lower/upper"),
                place.text("lower")
            )
        });
        check_layer(place, "upper", "upper", |place| {
            format!(
                "set up the sandbox: fsconfig(overlay) on {}: Invalid argument (os error 22)",
                place.text("lower")
            )
        });
    });
}

fn check_layer(
    place: &Workplace,
    upper: &str,
    work: &str,
    expected: impl Fn(&Workplace) -> String,
) {
    let mut request = over(place, "echo never");
    let layer = format!("cow:{}:{}", place.text(upper), place.text(work));
    request.mounts = vec![(place.text("lower"), "/workspace".to_owned(), layer)];
    let reply = place.run(&request);
    assert_eq!((reply.end, reply.stdout.as_str()), (expected(place), ""));
}

#[test]
fn mounts_on_a_copy_on_write_workspace_cover_it() {
    as_each_user(|place| {
        project(place);
        place.directory("lower/.git");
        place.file("lower/.git/config", "of the project\n");
        place.directory("view");
        place.file("view/config", "of the view\n");
        let line = "cat .git/config readme sealed; echo x > .git/config; echo x > sealed; cat /also/readme; \
                    echo both > /also/new; cat new; cat /also/.git/config";
        let mut request = over(place, line);
        request.mounts.push((
            place.text("view"),
            "/workspace/.git".to_owned(),
            "ro".to_owned(),
        ));
        request.files = vec![("/workspace/sealed".to_owned(), "sealed\n".to_owned())];
        request.aliases = vec![("/workspace".to_owned(), "/also".to_owned())];
        let reply = place.run(&request);
        assert_eq!(
            reply.stdout, "of the view\none\nsealed\none\nboth\nof the view\n",
            "{reply:?}"
        );
        assert_eq!(
            reply.stderr.matches("Read-only file system").count(),
            2,
            "{reply:?}"
        );
        assert_eq!(
            fs::read_to_string(place.path("lower/.git/config")).unwrap(),
            "of the project\n"
        );
    });
}

#[test]
fn an_alias_is_the_same_place_and_a_missing_one_is_named() {
    as_each_user(|place| {
        let mut request = place.shell("echo here > /real/path/of/it; cat /workspace/of/it; stat -c %d:%i /workspace /real/path | uniq | wc -l");
        place.directory("work/of");
        request.aliases = vec![("/workspace".to_owned(), "/real/path".to_owned())];
        let reply = place.run(&request);
        assert_eq!(reply.stdout, "here\n1\n", "{reply:?}");
        request.aliases = vec![("/nowhere".to_owned(), "/real/path".to_owned())];
        let reply = place.run(&request);
        assert_eq!(
            reply.end,
            "set up the sandbox: openat2 on /nowhere: No such file or directory (os error 2)"
        );
    });
}

#[test]
fn a_file_system_mounted_below_a_project_is_named() {
    as_each_user(|place| {
        project(place);
        // In a mount namespace of its own the driver puts a file system into the project.
        let script = format!(
            "mount -t tmpfs none {}/docs && exec \"$0\" \"$@\"",
            place.text("lower")
        );
        let wrapper = [
            "unshare",
            "--user",
            "--map-root-user",
            "--mount",
            "sh",
            "-c",
            &script,
        ];
        let reply = place.run_under(&wrapper, &over(place, "ls docs"));
        let expected = format!(
            "set up the sandbox: fsconfig(overlay) on {lower}, which has another file system at {lower}/docs",
            lower = place.text("lower")
        );
        assert!(reply.end.starts_with(&expected), "{reply:?}");
    });
}
