//! Which loops are found, and what one faulty file does to the others.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::super::{LoopCatalog, discover};
use super::put;

fn shown(found: &LoopCatalog) -> (Vec<&str>, Vec<String>) {
    let names = found
        .definitions
        .iter()
        .map(|definition| definition.name.as_str());
    (
        names.collect(),
        found.faults.iter().map(ToString::to_string).collect(),
    )
}

#[test]
fn loops_are_found_in_order_and_a_bad_one_hides_no_other() {
    let above = tempfile::tempdir().unwrap();
    let root = above.path().join("project");
    let loop_named = |name: &str| format!("---\nname: {name}\n---\nx\n");
    put(above.path(), ".pi/loops/foreign.md", &loop_named("foreign"));
    put(&root, ".pi/loops/b.md", &loop_named("second"));
    put(&root, ".pi/loops/a.md", &loop_named("first"));
    put(&root, ".pi/loops/bad.md", "no front matter");
    put(&root, ".pi/loops/c.md", &loop_named("first"));
    put(
        &root,
        ".ilchul/loops/own.md",
        &loop_named("own").replace('\n', "\r\n"),
    );
    put(&root, ".ilchul/loops/z.md", &loop_named("second"));
    put(&root, "deep/er/file", "");
    let found = discover(&root, &root.join("deep/er"));
    let (names, faults) = shown(&found);
    assert_eq!(names, ["first", "second", "own"]);
    assert_eq!(
        faults,
        [
            ".pi/loops/bad.md:1: missing front matter; start the file with a line of three \
             dashes, the settings, and another line of three dashes",
            ".pi/loops/c.md:2: `name`: duplicate loop name: first is also the loop of \
             .pi/loops/a.md; rename one of them; until then, Kapi uses the other file",
            ".ilchul/loops/z.md:2: `name`: duplicate loop name: second is also the loop of \
             .pi/loops/b.md; rename one of them; until then, Kapi uses the other file",
        ]
    );
    let first = &found.definitions[0];
    assert_eq!(first.source.file, ".pi/loops/a.md");
    let text = fs::read(root.join(".pi/loops/a.md")).unwrap();
    assert_eq!(first.source.sha256, kapi_store::hash::sha256_hex(&text));

    // A nearer directory hides the one above, however empty it is.
    fs::create_dir_all(root.join("deep/.pi/loops")).unwrap();
    let (names, _) = (discover(&root, &root.join("deep/er")), ());
    assert_eq!(shown(&names).0, ["own", "second"]);
    assert_eq!(
        discover(Path::new("/nonexistent"), Path::new("/")),
        LoopCatalog::default()
    );
}

#[test]
fn what_lies_in_wait_among_the_loops_is_refused_and_hides_no_other() {
    let above = tempfile::tempdir().unwrap();
    let root = above.path().join("project");
    put(above.path(), "secret.md", "---\nname: secret\n---\nx\n");
    put(&root, ".pi/loops/good.md", "---\nname: good\n---\nx\n");
    put(&root, "elsewhere/linked.md", "---\nname: linked\n---\nx\n");
    let at = |name: &str| root.join(".pi/loops").join(name);
    symlink("../../elsewhere/linked.md", at("inside.md")).unwrap();
    symlink("../../../secret.md", at("outside.md")).unwrap();
    symlink(above.path().join("secret.md"), at("absolute.md")).unwrap();
    symlink("/dev/zero", at("device.md")).unwrap();
    let mode = Mode::RUSR | Mode::WUSR;
    mknodat(CWD, at("pipe.md"), FileType::Fifo, mode, 0).unwrap();
    fs::create_dir(at("dir.md")).unwrap();
    fs::File::create(at("huge.md"))
        .unwrap()
        .set_len(1 << 40)
        .unwrap();
    let found = discover(&root, &root);
    let (names, faults) = shown(&found);
    assert_eq!(names, ["good", "linked"]);
    let files: Vec<&str> = found
        .faults
        .iter()
        .map(|fault| fault.file.as_str())
        .collect();
    let expected = ["absolute", "device", "dir", "huge", "outside", "pipe"];
    assert_eq!(
        files,
        expected.map(|name| format!(".pi/loops/{name}.md")),
        "{faults:?}"
    );
}
