//! What an agent may leave in a layer to make its reading hang, fail, follow or lie.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use kapi_git::layer::changes::changes;
use kapi_git::layer::lower::LowerStack;
use kapi_git::layer::walk::{LayerWalk, WalkNote, WalkNoteKind, walk};
use kapi_git::layer::{Layer, Marks};
use tempfile::TempDir;

use crate::fixture::{Fixture, changed, git, refused, shell, write};
use crate::layer_fixture::{LayerFixture, mounted};

/// A project without git, and a layer over it.
struct Plain {
    temp: TempDir,
    layer: Layer,
}

impl Plain {
    fn new() -> Self {
        Self::with(Marks::User)
    }

    fn with(marks: Marks) -> Self {
        let temp = TempDir::new().expect("a temporary directory");
        write(&temp.path().join("project/a"), "one\ntwo\n");
        write(&temp.path().join("project/dir/b"), "b\n");
        write(&temp.path().join("project/dir/c"), "c\n");
        let layer = Layer::open(&temp.path().join("layer"), marks, "test").expect("layer");
        Self { temp, layer }
    }

    fn lower(&self) -> std::path::PathBuf {
        self.temp.path().join("project")
    }

    fn stack(&self) -> LowerStack {
        LowerStack::project(&self.lower())
    }

    fn inside(&self, script: &str) {
        mounted(&self.layer, &self.stack(), script);
    }

    fn walk(&self) -> LayerWalk {
        walk(&self.layer, &self.stack()).expect("walk")
    }
}

fn lines(walk: &LayerWalk) -> Vec<String> {
    let line = |change: &kapi_git::layer::walk::LayerChange| {
        format!("{} {:?}", change.path.display(), change.kind)
    };
    walk.changes.iter().map(line).collect()
}

fn refusals(walk: &LayerWalk) -> Vec<String> {
    let line = |found: &kapi_git::refused_path::RefusedPath| {
        format!("{} {:?}", found.path.display(), found.why)
    };
    walk.refused.iter().map(line).collect()
}

#[test]
fn a_walk_tells_what_changed_and_what_was_only_touched() {
    let plain = Plain::new();
    plain.inside("touch dir/b; echo three >> a; echo n > new; rm dir/c; chmod 700 dir/b");
    assert_eq!(
        lines(&plain.walk()),
        ["a Modified", "dir/b Mode", "dir/c Deleted", "new Added"]
    );
    plain.inside("rm -r dir; mkdir dir; echo b > dir/b; rm a; mkdir a; echo x > a/x; ln -s a link");
    assert_eq!(
        lines(&plain.walk()),
        [
            "a Type",
            "a/x Added",
            "dir Replaced",
            "link Added",
            "new Added"
        ]
    );
}

#[test]
fn a_project_without_git_gets_a_patch_that_is_cut() {
    let plain = Plain::new();
    plain.inside("echo three >> a; rm dir/c; echo n > new; ln -s /etc/passwd pw; seq 2000000 > big; mkfifo pipe");
    let lower = plain.stack();
    let found = changes(&git(), &plain.layer, &lower, 1 << 20).expect("changes");
    let text = String::from_utf8_lossy(&found.patch.bytes);
    assert!(
        text.contains("diff --git a/a b/a") && text.contains("+three"),
        "{text}"
    );
    assert!(
        text.contains("deleted file mode") && text.contains("-c\n"),
        "{text}"
    );
    assert!(
        text.contains("+/etc/passwd") && !text.contains("root:"),
        "{text}"
    );
    assert!(!found.patch.is_cut);
    assert_eq!(found.omitted, [Path::new("big")]);
    assert_eq!(refusals(&found.walk), ["pipe SpecialFile"]);
    // Nothing is committed here; a person may take the link by naming it.
    let note = WalkNote {
        path: "pw".into(),
        about: WalkNoteKind::AbsoluteLink,
    };
    assert_eq!(found.walk.notes, [note]);
    let part = changes(&git(), &plain.layer, &lower, 60).expect("changes");
    assert!(part.patch.is_cut && part.patch.bytes.len() <= 60);
    assert!(found.patch.bytes.starts_with(&part.patch.bytes));
}

#[test]
fn a_patch_is_whole_and_can_be_applied() {
    let plain = Plain::new();
    write(&plain.temp.path().join("project/deep/er/x"), "x\n");
    write(&plain.temp.path().join("project/deep/y"), "y\n");
    write(&plain.temp.path().join("project/blob"), "old\0old");
    plain.inside(
        "printf 'new\\0new' > blob; rm -r deep; rm -r dir; mkdir dir; echo again > dir/b; echo z > new",
    );
    let found = changes(&git(), &plain.layer, &plain.stack(), 1 << 20).expect("changes");
    assert!(
        !found.patch.is_cut && found.omitted.is_empty(),
        "{:?}",
        found.omitted
    );
    let patch = plain.temp.path().join("patch");
    write(&patch, &String::from_utf8_lossy(&found.patch.bytes));
    shell(&plain.lower(), "git apply ../patch");
    let left = shell(&plain.lower(), "find . -type f | sort; cat dir/b blob");
    assert_eq!(left, "./a\n./blob\n./dir/b\n./new\nagain\nnew\0new");
}

#[test]
fn nothing_in_a_layer_makes_reading_it_hang() {
    let layer = LayerFixture::new();
    let started = Instant::now();
    layer.inside(
        "mkfifo .gitattributes src/.gitignore pipe; rm .gitignore README; mkfifo .gitignore README
         truncate -s 1T huge; truncate -s 1T src/main.txt
         python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")' || mkfifo sock
         mkdir -p d/.git; mkfifo d/.git/HEAD; echo fine > fine",
    );
    let made = layer.commit().candidate;
    assert_eq!(
        changed(&made),
        [".gitignore Deleted", "README Deleted", "fine Added"]
    );
    assert_eq!(
        refused(&made),
        [
            ".gitattributes SpecialFile",
            ".gitignore SpecialFile",
            "README SpecialFile",
            "d/.git GitDirectory",
            "huge TooLarge",
            "pipe SpecialFile",
            "sock SpecialFile",
            "src/.gitignore SpecialFile",
            "src/main.txt TooLarge",
        ]
    );
    let found = changes(&git(), &layer.layer, &layer.stack(), 1 << 20).expect("changes");
    assert_eq!(lines(&found.walk), ["fine Added"]);
    assert!(
        started.elapsed() < Duration::from_secs(300),
        "{:?}",
        started.elapsed()
    );
}

#[test]
fn names_of_git_data_are_refused_in_every_spelling() {
    let layer = LayerFixture::new();
    layer.inside(
        "mkdir -p .GIT d/git~1 '.git ' 'e/.git.' src/.git\necho x > .GIT/config; echo x > d/git~1/config
         echo x > '.git /config'; echo x > e/.git./x; echo x > src/.git/config
         mkdir $(printf '.g\\342\\200\\214it'); echo x > $(printf '.g\\342\\200\\214it')/config
         ln -s x .gitmodules; mkdir -p .git/hooks; echo evil > .git/hooks/post-commit; echo x > fine",
    );
    let made = layer.commit().candidate;
    assert_eq!(changed(&made), ["fine Added"]);
    assert_eq!(
        refused(&made),
        [
            ".GIT/config UnsafeName",
            ".git /config UnsafeName",
            ".gitmodules UnsafeName",
            ".g\u{200c}it/config UnsafeName",
            "d/git~1/config UnsafeName",
            "e/.git./x UnsafeName",
            "src/.git GitDirectory",
        ]
    );
    let walk = walk(&layer.layer, &layer.stack()).expect("walk");
    assert_eq!(lines(&walk), [".gitmodules Added", "fine Added"]);
    assert_eq!(walk.refused.len(), 7, "{:?}", walk.refused);
}

#[test]
fn links_in_a_layer_are_never_followed() {
    let fixture = Fixture::new();
    let outside = fixture.root().join("outside");
    write(&outside.join("main.txt"), "secret\n");
    let layer = LayerFixture::on(fixture);
    layer.inside(&format!(
        "rm -r src; ln -s '{}' src; ln -s /etc/passwd pw; ln -s . loop; ln -s pw .gitattributes",
        outside.display()
    ));
    let made = layer.commit();
    assert_eq!(
        changed(&made.candidate),
        [".gitattributes Added", "loop Added", "src/main.txt Deleted"]
    );
    assert_eq!(
        refused(&made.candidate),
        ["pw EscapingLink", "src EscapingLink"]
    );
    assert_eq!(crate::fixture::read(&outside.join("main.txt")), "secret\n");
}

#[test]
fn names_are_bytes_and_paths_may_be_deep() {
    let layer = LayerFixture::new();
    let names: [&[u8]; 8] = [
        b"-rf",
        b"a\nb",
        b"tab\t\"q\"\\",
        b"\xff\xfe",
        b" ",
        b":(top)x",
        b"*",
        b"\x1b[2J",
    ];
    for name in names {
        File::create(layer.layer.upper().join(OsStr::from_bytes(name))).expect("create");
        let dir = layer.layer.upper().join("in").join(OsStr::from_bytes(name));
        fs::create_dir_all(&dir).expect("create");
        File::create(dir.join("x")).expect("create");
    }
    layer.inside("p=.; for n in $(seq 300); do p=$p/d$n; done; mkdir -p $p; echo x > $p/x");
    let made = layer.commit().candidate;
    assert_eq!(made.refused, []);
    assert_eq!(made.changed.len(), 2 * names.len() + 1);
    // Too deep for any path to name: from the inside out.
    layer.inside(
        "n=$(printf 'e%.0s' $(seq 200)); mkdir $n; echo x > $n/x
         for i in $(seq 30); do mkdir up; mv $n up/$n; mv up $n; done",
    );
    let made = layer.commit().candidate;
    assert_eq!(made.changed.len(), 2 * names.len() + 1);
    assert!(
        refused(&made)[0].ends_with(" PathTooLong"),
        "{:?}",
        made.refused
    );
}

#[test]
fn what_is_shut_is_opened_up() {
    let layer = LayerFixture::new();
    layer.inside("mkdir closed; echo x > closed/x; echo y > y; chmod 0 closed y");
    let made = layer.commit().candidate;
    assert_eq!(changed(&made), ["closed/x Added", "y Added"]);
}

#[test]
fn an_agent_cannot_forge_the_kernels_marks() {
    let layer = LayerFixture::new();
    // Inside, the kernel renames them; outside, they are in the other space.
    layer.inside(
        "mkdir -p src tests; python3 - <<'E'
import os
for path, name in [('src', 'opaque'), ('tests', 'redirect')]:
    for space in ['user.overlay.', 'user.overlay.overlay.']:
        try: os.setxattr(path, space + name, b'y')
        except OSError as error: print(error)
E
         : > empty; echo n > src/n",
    );
    let made = layer.commit().candidate;
    assert_eq!(changed(&made), ["empty Added", "src/n Added"]);
}

#[test]
fn marks_of_a_mount_by_root_are_read_when_told() {
    let plain = Plain::with(Marks::Trusted);
    let script = "import os
os.makedirs('layer/upper/dir')
os.setxattr('layer/upper/dir', 'trusted.overlay.opaque', b'y')
open('layer/upper/a', 'w').close()
os.setxattr('layer/upper/a', 'trusted.overlay.whiteout', b'')
open('layer/upper/dir/b', 'w').write('b\\n')
os.setxattr('layer/upper/dir/b', 'user.overlay.whiteout', b'')";
    shell(plain.temp.path(), &format!("python3 -c \"{script}\""));
    assert_eq!(lines(&plain.walk()), ["a Deleted", "dir Replaced"]);
    shell(
        plain.temp.path(),
        "python3 -c \"import os; os.setxattr('layer/upper/dir', 'trusted.overlay.redirect', b'/x')\"",
    );
    let error = walk(&plain.layer, &plain.stack()).expect_err("redirect");
    assert!(
        error.to_string().contains("\"redirect\" is not supported"),
        "{error}"
    );
}
