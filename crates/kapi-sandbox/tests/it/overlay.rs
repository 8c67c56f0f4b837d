//! Copy-on-write workspaces: what is written lands in the layer, and the project never changes.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use crate::request::Request;
use crate::workplace::{Workplace, as_each_user};

/// A project of the user's, with a file of each kind.
fn project(location: &Workplace) {
    for directory in ["lower", "lower/src", "lower/docs", "lower/docs/deep"] {
        location.directory(directory);
    }
    location.file("lower/readme", "one\n");
    location.file("lower/src/main", "two\n");
    location.file("lower/docs/page", "three\n");
    location.file("lower/docs/deep/leaf", "four\n");
    location.file("lower/run.sh", "#!/bin/sh\necho ran\n");
    std::os::unix::fs::symlink("readme", location.path("lower/link")).unwrap();
    for layer in ["upper", "scratch"] {
        location.directory(layer);
    }
}

/// A shell line over the project; `lower` is made at `/workspace`.
fn over(location: &Workplace, line: &str) -> Request {
    let mut request = location.shell(line);
    let layer = format!(
        "cow:{}:{}",
        location.text("upper"),
        location.text("scratch")
    );
    request.mounts = vec![(location.text("lower"), "/workspace".to_owned(), layer)];
    request
}

fn check_output(location: &Workplace, line: &str, expected: &str) {
    let reply = location.run(&over(location, line));
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
    as_each_user(|location| {
        project(location);
        let before = portrait(&location.path("lower"));
        let line = "echo more >> readme; mkdir new; echo n > new/file; rm src/main; rm -r docs; \
                    mkdir docs; echo fresh > docs/page; ln -sfn new link; chmod +x src; chmod 755 run.sh; \
                    touch -d 2001-01-01 run.sh; ./run.sh; ls";
        check_output(
            location,
            line,
            "ran\ndocs\nlink\nnew\nreadme\nrun.sh\nsrc\n",
        );
        assert_eq!(portrait(&location.path("lower")), before);

        let upper = |name: &str| location.path("upper").join(name);
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
    as_each_user(|location| {
        project(location);
        check_output(location, "echo kept > left; rm readme", "");
        check_output(
            location,
            "cat left; ls readme 2>/dev/null || echo gone",
            "kept\ngone\n",
        );
        // Also after a run that was killed in the middle of writing.
        let mut killed = over(location, "echo torn > torn; kill -9 $$");
        killed.deadline_ms = 5_000;
        assert_eq!(location.run(&killed).end, "Signaled(9)");
        assert!(
            location.path("scratch/work").exists(),
            "what forbids the next mount"
        );
        check_output(location, "cat torn left", "torn\nkept\n");
    });
}

#[test]
fn a_directory_of_the_project_can_be_renamed_and_an_overlay_s_own_marks_cannot_be_forged() {
    as_each_user(|location| {
        project(location);
        let line = "mv docs papers && cat papers/deep/leaf && ls -d docs 2>/dev/null; \
                    python3 -c 'import os; os.setxattr(\"src\", \"user.overlay.opaque\", b\"y\")' 2>/dev/null; \
                    cat src/main";
        check_output(location, line, "four\ntwo\n");
        check_output(location, "cat papers/page src/main", "three\ntwo\n");
        assert_eq!(
            fs::read_to_string(location.path("lower/docs/deep/leaf")).unwrap(),
            "four\n"
        );
    });
}

#[test]
fn a_layer_belongs_to_one_sandbox_at_a_time() {
    as_each_user(|location| {
        project(location);
        let held = fs::File::open(location.path("upper")).unwrap();
        let exclusive = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        rustix::fs::flock(&held, exclusive).unwrap();
        let reply = location.run(&over(location, "echo never"));
        let expected = format!(
            "set up the sandbox: flock on {}, which another sandbox uses: Device or resource busy (os error 16)",
            location.text("upper")
        );
        assert_eq!(reply.end, expected);
        drop(held);
        check_output(location, "echo now", "now\n");
        // And it is free again at once when a run has returned.
        for _ in 0..5 {
            check_output(location, "true", "");
        }
    });
}

#[test]
fn what_is_missing_or_wrong_is_named() {
    as_each_user(|location| {
        project(location);
        for name in ["lower", "upper", "scratch"] {
            let away = location.path("away");
            fs::rename(location.path(name), &away).unwrap();
            let reply = location.run(&over(location, "true"));
            let expected = format!(
                "set up the sandbox: open on {}: No such file or directory (os error 2)",
                location.text(name)
            );
            assert_eq!(reply.end, expected);
            fs::rename(&away, location.path(name)).unwrap();
        }
        location.directory("lower/upper");
        check_layer(location, "lower/upper", "scratch", |location| {
            format!(
                "set up the sandbox: overlay on {}, which lies inside {}: Invalid argument (os error 22)",
                location.text("lower/upper"),
                location.text("lower")
            )
        });
        check_layer(location, "upper", "upper", |location| {
            format!(
                "set up the sandbox: fsconfig(overlay) on {}: Invalid argument (os error 22)",
                location.text("lower")
            )
        });
    });
}

fn check_layer(
    location: &Workplace,
    upper: &str,
    work: &str,
    expected: impl Fn(&Workplace) -> String,
) {
    let mut request = over(location, "echo never");
    let layer = format!("cow:{}:{}", location.text(upper), location.text(work));
    request.mounts = vec![(location.text("lower"), "/workspace".to_owned(), layer)];
    let reply = location.run(&request);
    assert_eq!((reply.end, reply.stdout.as_str()), (expected(location), ""));
}

#[test]
fn mounts_on_a_copy_on_write_workspace_cover_it() {
    as_each_user(|location| {
        project(location);
        location.directory("lower/.git");
        location.file("lower/.git/config", "of the project\n");
        location.directory("view");
        location.file("view/config", "of the view\n");
        let line = "cat .git/config readme sealed; echo x > .git/config; echo x > sealed; cat /also/readme; \
                    echo both > /also/new; cat new; cat /also/.git/config";
        let mut request = over(location, line);
        request.mounts.push((
            location.text("view"),
            "/workspace/.git".to_owned(),
            "ro".to_owned(),
        ));
        request.files = vec![("/workspace/sealed".to_owned(), "sealed\n".to_owned())];
        request.aliases = vec![("/workspace".to_owned(), "/also".to_owned())];
        let reply = location.run(&request);
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
            fs::read_to_string(location.path("lower/.git/config")).unwrap(),
            "of the project\n"
        );
    });
}

#[test]
fn an_alias_is_the_same_place_and_a_missing_one_is_named() {
    as_each_user(|location| {
        let mut request = location.shell("echo here > /real/path/of/it; cat /workspace/of/it; stat -c %d:%i /workspace /real/path | uniq | wc -l");
        location.directory("work/of");
        request.aliases = vec![("/workspace".to_owned(), "/real/path".to_owned())];
        let reply = location.run(&request);
        assert_eq!(reply.stdout, "here\n1\n", "{reply:?}");
        request.aliases = vec![("/nowhere".to_owned(), "/real/path".to_owned())];
        let reply = location.run(&request);
        assert_eq!(
            reply.end,
            "set up the sandbox: openat2 on /nowhere: No such file or directory (os error 2)"
        );
    });
}

#[test]
fn a_file_system_mounted_below_a_project_is_named() {
    as_each_user(|location| {
        project(location);
        // In a mount namespace of its own the driver puts a file system into the project.
        let script = format!(
            "mount -t tmpfs none {}/docs && exec \"$0\" \"$@\"",
            location.text("lower")
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
        let reply = location.run_under(&wrapper, &over(location, "ls docs"));
        let expected = format!(
            "set up the sandbox: fsconfig(overlay) on {lower}, which has another file system at {lower}/docs",
            lower = location.text("lower")
        );
        assert!(reply.end.starts_with(&expected), "{reply:?}");
    });
}

#[test]
fn a_layer_lies_over_a_stack_whose_marks_hide_what_is_further_down() {
    as_each_user(|location| {
        project(location);
        for directory in ["ground", "ground/docs", "ground/gone"] {
            location.directory(directory);
        }
        location.file("ground/docs/old", "old\n");
        location.file("ground/gone/file", "gone\n");
        location.file("ground/readme", "hidden\n");
        let marks = [("lower/gone", "directory"), ("lower/docs/hidden", "file")];
        location.file("ground/docs/hidden", "hidden\n");
        for (mark, what) in marks {
            let made = rustix::fs::mknodat(
                rustix::fs::CWD,
                location.path(mark),
                rustix::fs::FileType::CharacterDevice,
                rustix::fs::Mode::empty(),
                0,
            );
            made.unwrap_or_else(|errno| panic!("mark a {what}: {errno}"));
        }
        let mut request = location.shell("cat readme; ls; ls docs; echo more >> docs/old");
        let layer = ["cow", "upper", "scratch", "ground"];
        let layer = layer.map(|part| match part {
            "cow" => part.to_owned(),
            part => location.text(part),
        });
        request.mounts = vec![(
            location.text("lower"),
            "/workspace".to_owned(),
            layer.join(":"),
        )];
        let before = portrait(&location.path("ground"));
        let reply = location.run(&request);
        assert_eq!(
            (reply.stdout.as_str(), reply.stderr.as_str()),
            (
                "one\ndocs\nlink\nreadme\nrun.sh\nsrc\ndeep\nold\npage\n",
                ""
            )
        );
        assert_eq!(portrait(&location.path("ground")), before);
        let written = fs::read_to_string(location.path("upper/docs/old")).unwrap();
        assert_eq!(written, "old\nmore\n");
    });
}
