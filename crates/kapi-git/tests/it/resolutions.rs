//! Conflicts settled again: remembered by what met, mechanical ones, and markers that were left.

use kapi_git::changed_file::FileMode;
use kapi_git::id::CommitId;
use kapi_git::land::merge::ConflictPath;
use kapi_git::land::source::{ApplyMethod, SettledContent};
use kapi_git::markers::LeftoverMarker;
use kapi_git::rescue::Signature;
use kapi_git::resolutions::Resolution;

use crate::fixture::AT;
use crate::source::SourceRig;

fn only(rig: &SourceRig, head: &CommitId, commit: &CommitId) -> ConflictPath {
    let conflict = rig.conflict(head, commit, ApplyMethod::Merge).conflict;
    let [path] = conflict.paths.as_slice() else {
        panic!("{conflict:?}");
    };
    path.clone()
}

#[test]
fn the_same_contents_are_known_again_elsewhere_and_the_other_way_round() {
    let rig = SourceRig::new("seq 1 20 > n");
    let one = rig.side("sed -i 's/^5$/five/' n");
    let other = rig.side("sed -i 's/^5$/FIVE/' n");
    let conflict = only(&rig, &one, &other);
    let repository = rig.fixture.open();
    assert_eq!(
        repository.remembered_resolution(&conflict).expect("refs"),
        None
    );
    let author = rig.author();
    let signature = Signature {
        author: &author,
        at_unix_seconds: AT,
    };
    let content = SettledContent {
        mode: FileMode::Executable,
        bytes: b"both\0\n".to_vec(),
    };
    let scratch = rig.fixture.root().join("scratch");
    let before = rig.fixture.git(&["status", "--porcelain", "--ignored"]);
    let remember = |content: Option<&SettledContent>, rationale: &str| {
        let resolution = Resolution {
            conflict: &conflict,
            content,
            rationale,
        };
        repository.remember_resolution(&resolution, signature, &scratch)
    };
    let kept = remember(Some(&content), "both are meant").expect("kept");
    assert_eq!(
        remember(Some(&content), "both are meant").expect("kept"),
        kept
    );
    assert!(!scratch.exists());
    assert_eq!(
        rig.fixture.git(&["status", "--porcelain", "--ignored"]),
        before
    );
    let moved = rig.on(&other, "git mv n m");
    for again in [only(&rig, &other, &one), only(&rig, &one, &moved)] {
        let found = repository.remembered_resolution(&again).expect("refs");
        let found = found.expect("it is known");
        assert_eq!(found.content.as_ref(), Some(&content));
        assert_eq!(
            (found.rationale.as_str(), &found.commit),
            ("both are meant", &kept)
        );
    }
    let else_ = rig.side("sed -i 's/^5$/V/' n");
    let unknown = only(&rig, &one, &else_);
    assert_eq!(
        repository.remembered_resolution(&unknown).expect("refs"),
        None
    );
    remember(None, "it goes").expect("kept");
    let found = repository.remembered_resolution(&conflict).expect("refs");
    assert_eq!(found.expect("it is known").content, None);
}

#[test]
fn the_entries_of_both_sides_are_taken() {
    let rig = SourceRig::new(r"printf '# Log\n\n- old\n' > CHANGES; printf 'a\0b' > binary");
    let one = rig.side(r"sed -i '2a - one' CHANGES; printf 'a\0c' > binary");
    let other = rig.side("sed -i '2a - other' CHANGES; git rm -q binary");
    let conflict = rig.conflict(&one, &other, ApplyMethod::Merge).conflict;
    let repository = rig.fixture.open();
    let scratch = rig.fixture.root().join("scratch");
    let union: Vec<Option<Vec<u8>>> = conflict
        .paths
        .iter()
        .map(|path| repository.union_of(path, &scratch).expect("git"))
        .collect();
    let entries = b"# Log\n\n- one\n- other\n- old\n".to_vec();
    assert_eq!(union, [Some(entries), None]);
    let binary = rig.side(r"printf 'a\0d' > binary");
    let path = only(&rig, &one, &binary);
    assert_eq!(repository.union_of(&path, &scratch).expect("git"), None);
    assert!(!scratch.exists());
}

#[test]
fn only_markers_that_no_side_has_are_left_over() {
    let rig = SourceRig::new("seq 1 20 > n; printf '<<<<<<< HEAD\\n' > about");
    let one = rig.side("sed -i 's/^5$/five/' n; printf 'Title\\n=======\\n' > text");
    let other = rig.side("sed -i 's/^5$/FIVE/' n; git mv about moved");
    let merge = format!("git merge -q {other} > /dev/null || true");
    let left = rig.on(&one, &merge);
    let sides = [one.clone(), other.clone()];
    let repository = rig.fixture.open();
    let found = repository.leftover_markers(&sides, &left).expect("hunks");
    let marker = |line, text: &str| LeftoverMarker {
        path: "n".into(),
        line,
        text: text.as_bytes().to_vec(),
    };
    let ends = format!(">>>>>>> {other}");
    assert_eq!(
        found,
        [
            marker(5, "<<<<<<< HEAD"),
            marker(7, "======="),
            marker(9, &ends)
        ]
    );
    let clean = rig.on(&left, "sed -i '/^<<<<<<<\\|^=======\\|^>>>>>>>/d' n");
    assert_eq!(
        repository.leftover_markers(&sides, &clean).expect("hunks"),
        []
    );
    let half = rig.on(&left, "sed -i '/^<<<<<<<\\|^>>>>>>>/d' n");
    let found = repository.leftover_markers(&sides, &half).expect("hunks");
    assert_eq!(found, [marker(6, "=======")]);
}
