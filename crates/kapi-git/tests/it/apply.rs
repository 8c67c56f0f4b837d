//! Bringing changes into a project: what is taken, what is not, and what never gets lost.

use std::collections::BTreeSet;
use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use kapi_git::apply::{
    ApplyConflict, ApplyError, ApplyOffer, ApplyPlan, ApplyRefusal, BaseState, ByteSource,
    OnConflict, PathVerdict, SandboxState, apply, preview, recover,
};

use crate::apply_site::{Site, lines, mode};
use crate::fixture::{Fixture, everything, git, read, shell, write};

#[test]
fn every_kind_of_change_arrives_and_nothing_else_does() {
    let site = Site::new(&[
        ("keep", "k"),
        ("edit", "one"),
        ("gone", "g"),
        ("d/x", "x"),
        ("d/y", "y"),
    ]);
    fs::set_permissions(site.project("edit"), Permissions::from_mode(0o664)).expect("chmod");
    site.await_tick("began");
    let mut script = site.added("bin/run", "#!/bin/sh\n");
    script.new = SandboxState::File {
        source: site.source("bin/run"),
        mode: 0o6777,
    };
    let offers = [
        site.changed("edit", "two"),
        site.removed("gone"),
        site.added("new/deep/file", "n"),
        script,
        site.link("alias", "d/x"),
        site.offer("empty", BaseState::Absent, SandboxState::Directory),
        site.removed("d"),
    ];
    let done = site.apply(&offers).expect("apply");
    assert_eq!(
        done,
        [
            "alias Create",
            "bin/run Create",
            "d Delete",
            "edit Replace",
            "empty Create",
            "gone Delete",
            "new/deep/file Create",
        ]
    );
    let found = everything(&site.path("project"));
    let names: Vec<String> = found
        .keys()
        .map(|path| path.display().to_string())
        .collect();
    assert_eq!(
        names,
        [
            "alias",
            "bin",
            "bin/run",
            "edit",
            "empty",
            "keep",
            "new",
            "new/deep",
            "new/deep/file"
        ]
    );
    assert_eq!(read(&site.project("edit")), "two");
    // The person's own permission for the group stays, and special bits never come.
    assert_eq!(mode(&site.project("edit")), 0o664);
    assert_eq!(mode(&site.project("bin/run")), 0o755);
    assert_eq!(
        fs::read_link(site.project("alias")).expect("link"),
        Path::new("d/x")
    );
    site.assert_clean();
    // A second time there is nothing to do.
    let again = site.preview(&offers);
    assert!(
        again.iter().all(|line| line.ends_with(" Same")),
        "{again:?}"
    );
}

#[test]
fn what_changed_on_the_host_since_is_never_overwritten() {
    let site = Site::new(&[
        ("a", "one"),
        ("b", "one"),
        ("c", "one"),
        ("d/x", "one"),
        ("f", "same"),
    ]);
    let offers = [
        site.changed("a", "agent"),
        site.changed("b", "agent"),
        site.removed("c"),
        site.removed("d"),
        site.added("new", "agent"),
        site.changed("f", "agrees"),
    ];
    write(&site.project("a"), "person");
    fs::remove_file(site.project("b")).expect("remove");
    write(&site.project("c"), "person");
    write(&site.project("d/x"), "person");
    write(&site.project("new"), "person");
    write(&site.project("f"), "agrees");
    assert_eq!(
        site.refuses(&offers),
        [
            "a Conflict(SamePlaces { n_locations: 1 })",
            "b Conflict(GoneHere)",
            "c Conflict(ChangedHere)",
            "d Conflict(NotEmpty)",
            "new Conflict(AppearedHere)",
        ]
    );
}

#[test]
fn a_pipe_in_a_files_place_is_not_waited_for() {
    let site = Site::new(&[("a", "one")]);
    let offer = site.changed("a", "agent");
    shell(&site.path("project"), "rm a; mkfifo a");
    assert_eq!(site.preview(&[offer]), ["a Conflict(SpecialFile)"]);
}

#[test]
fn a_file_put_back_by_content_but_touched_is_still_a_change() {
    let site = Site::new(&[("a", "one\u{0}")]);
    let offer = site.changed("a", "agent");
    // Same length, and the time of writing set back: only the change time tells.
    shell(
        &site.path("project"),
        "touch -r a ../stamp; printf 'two' > a; truncate -s 4 a; touch -r ../stamp a",
    );
    assert_eq!(site.refuses(&[offer]), ["a Conflict(ChangedHere)"]);
}

#[test]
fn texts_that_changed_in_different_places_are_merged() {
    let lines = |first: &str, last: &str| format!("{first}\n2\n3\n4\n5\n6\n7\n{last}\n");
    let site = Site::new(&[("a", &lines("1", "8")), ("run", "x\n")]);
    let offers = [site.changed("a", &lines("1", "agent"))];
    write(&site.project("a"), &lines("person", "8"));
    assert_eq!(site.apply(&offers).expect("apply"), ["a Merge"]);
    assert_eq!(read(&site.project("a")), lines("person", "agent"));
    site.assert_clean();
}

#[test]
fn conflicts_are_passed_over_or_marked_only_when_asked() {
    let mut site = Site::new(&[("a", "one\n"), ("bin", "\u{0}"), ("c", "one\n")]);
    let offers = [
        site.changed("a", "agent\n"),
        site.changed("bin", "\u{0}agent"),
        site.changed("c", "agent\n"),
    ];
    write(&site.project("a"), "person\n");
    write(&site.project("bin"), "\u{0}person");
    site.on_conflict = OnConflict::Skip;
    let done = site.apply(&offers).expect("apply");
    assert_eq!(
        done,
        [
            "a Conflict(SamePlaces { n_locations: 1 })",
            "bin Conflict(ChangedHere)",
            "c Replace"
        ]
    );
    assert_eq!(read(&site.project("a")), "person\n");
    assert_eq!(read(&site.project("c")), "agent\n");
    site.on_conflict = OnConflict::Mark;
    let done = site.apply(&offers).expect("apply");
    assert_eq!(
        done,
        [
            "a Marked { n_locations: 1 }",
            "bin Conflict(ChangedHere)",
            "c Same"
        ]
    );
    assert_eq!(
        read(&site.project("a")),
        "<<<<<<< host\nperson\n=======\nagent\n>>>>>>> sandbox\n"
    );
    assert_eq!(read(&site.project("bin")), "\u{0}person");
}

#[test]
fn a_selection_takes_part_and_says_what_it_did_not_find() {
    let mut site = Site::new(&[("src/a", "1"), ("src/b", "1"), ("docs/c", "1")]);
    site.select = ["src", "!**/b", "nothing"].map(str::to_owned).to_vec();
    let offers = [
        site.changed("src/a", "2"),
        site.changed("src/b", "2"),
        site.changed("docs/c", "2"),
    ];
    let shown = site.with(&offers, |plan| preview(plan).expect("preview"));
    assert_eq!(shown.unmatched, ["nothing"]);
    assert_eq!(shown.n_left_out, 2);
    assert_eq!(site.apply(&offers).expect("apply"), ["src/a Replace"]);
    assert_eq!(read(&site.project("src/b")), "1");
    assert_eq!(read(&site.project("docs/c")), "1");
    site.select = vec!["../x".to_owned()];
    let error = site.apply(&offers).expect_err("a bad pattern");
    assert!(matches!(error, ApplyError::Pattern { .. }), "{error}");
}

#[test]
fn directories_and_files_change_places() {
    let site = Site::new(&[("file", "f"), ("dir/a", "a"), ("dir/sub/b", "b")]);
    let offers = [
        site.offer("file", site.as_of("file"), SandboxState::Directory),
        site.added("file/inside", "i"),
        site.offer("dir/a", site.as_of("dir/a"), SandboxState::Absent),
        ApplyOffer {
            old: site.as_of("dir"),
            ..site.link("dir", "file/inside")
        },
    ];
    assert_eq!(
        site.apply(&offers).expect("apply"),
        [
            "dir Replace",
            "dir/a Delete",
            "file Replace",
            "file/inside Create"
        ]
    );
    assert_eq!(read(&site.project("file/inside")), "i");
    assert_eq!(read(&site.project("dir")), "i");
    assert!(site.project("dir").is_symlink());
    site.assert_clean();
}

#[test]
fn links_are_never_followed_and_never_lead_out_unless_named() {
    let mut site = Site::new(&[("d/x", "x")]);
    let outside = site.path("outside");
    write(&outside.join("secret"), "mine");
    let offers = [
        site.link("abs", "/etc/passwd"),
        site.link("up", "../outside/secret"),
        site.link("d/fine", "../d/x"),
        site.link("git", ".git/hooks"),
    ];
    assert_eq!(
        site.refuses(&offers),
        [
            "abs Refused(LinkOut)",
            "git Refused(LinkOut)",
            "up Refused(LinkOut)"
        ]
    );
    site.links_out.insert("abs".into());
    site.on_conflict = OnConflict::Skip;
    site.apply(&offers).expect("apply");
    assert!(site.project("abs").is_symlink());
    assert!(!site.project("up").is_symlink());
    assert!(site.project("d/fine").is_symlink());
    // A directory of the project that is a link now.
    fs::rename(site.project("d"), site.path("moved")).expect("move");
    symlink(&outside, site.project("d")).expect("link");
    let before = everything(&outside);
    assert_eq!(
        site.preview(&[
            site.changed("d/secret", "agent"),
            site.added("d/new", "agent")
        ]),
        [
            "d/new Conflict(NoDirectory)",
            "d/secret Conflict(NoDirectory)"
        ]
    );
    site.apply(&[site.added("d/new", "agent"), site.removed("d/secret")])
        .expect("apply");
    assert_eq!(everything(&outside), before);
    // A link in the sandbox is not read through either.
    symlink(outside.join("secret"), site.path("upper").join("stolen")).expect("link");
    symlink(&outside, site.path("upper").join("dir")).expect("link");
    let stolen = |path: &str| {
        let source = site.source(path);
        site.offer(
            path,
            BaseState::Absent,
            SandboxState::File {
                source,
                mode: 0o644,
            },
        )
    };
    shell(&site.path("upper"), "mkfifo pipe");
    assert_eq!(
        site.preview(&[
            stolen("stolen"),
            stolen("dir/secret"),
            stolen("pipe"),
            stolen("none")
        ]),
        [
            "dir/secret Refused(NoFile)",
            "none Refused(NoFile)",
            "pipe Refused(NoFile)",
            "stolen Refused(NoFile)",
        ]
    );
}

#[test]
fn an_offered_link_is_no_way_to_write_elsewhere() {
    let mut site = Site::new(&[]);
    let outside = site.path("outside");
    write(&outside.join("x"), "mine");
    site.links_out.insert("way".into());
    site.on_conflict = OnConflict::Skip;
    let offers = [site.link("way", "../outside"), site.added("way/x", "agent")];
    assert_eq!(
        site.apply(&offers).expect("apply"),
        ["way Create", "way/x Refused(NotBelow)"]
    );
    assert_eq!(read(&outside.join("x")), "mine");
}

#[test]
fn gits_data_and_kapis_state_are_refused_by_every_name() {
    let site = Site::new(&[]);
    let offers: Vec<ApplyOffer> = [
        ".git/hooks/pre-commit",
        "sub/.GIT/config",
        "git~1/config",
        ".ilchul/config.toml",
        ".Ilchul/x",
        "../escape",
    ]
    .iter()
    .map(|path| {
        let source = site.source("payload");
        site.offer(
            path,
            BaseState::Absent,
            SandboxState::File {
                source,
                mode: 0o755,
            },
        )
    })
    .collect();
    write(&site.path("upper/payload"), "#!/bin/sh\n");
    let found = site.refuses(&offers);
    assert_eq!(found.len(), offers.len(), "{found:?}");
    assert!(everything(&site.path("project")).is_empty());
}

#[test]
fn git_blobs_serve_as_before_and_after() {
    let fixture = Fixture::new();
    let repository = fixture.open();
    let blob = |rev: &str| ByteSource::Blob {
        id: fixture.git(&["rev-parse", rev]),
    };
    write(&fixture.repo().join("README"), "hello\nagent\n");
    fixture.commit("agent");
    fixture.git(&["reset", "-q", "--hard", "HEAD~1"]);
    let offers = [ApplyOffer {
        path: "README".into(),
        old: BaseState::File {
            source: blob("HEAD:README"),
            is_executable: false,
        },
        new: SandboxState::File {
            source: blob("HEAD@{1}:README"),
            mode: 0o644,
        },
    }];
    let (project, work) = (fixture.repo(), fixture.root().join("work"));
    let git = git();
    let plan = ApplyPlan {
        git: &git,
        repository: Some(&repository),
        project: &project,
        work: &work,
        offers: &offers,
        select: &[],
        links_out: &BTreeSet::new(),
        on_conflict: OnConflict::Refuse,
    };
    write(&project.join("README"), "person\nhello\n");
    let applied = apply(&plan).expect("apply");
    assert_eq!(lines(&applied.preview.verdicts), ["README Merge"]);
    assert_eq!(read(&project.join("README")), "person\nhello\nagent\n");
    let lost = ApplyPlan {
        repository: None,
        ..plan
    };
    let error = apply(&lost).expect_err("no repository");
    assert!(matches!(error, ApplyError::NoRepository { .. }), "{error}");
}

#[test]
fn nothing_to_recover_is_fine_and_damage_is_said() {
    let site = Site::new(&[("a", "one")]);
    let (project, work) = (site.path("project"), site.path("work"));
    let recovery = recover(&project, &work).expect("recover");
    assert!(!recovery.was_interrupted);
    write(&work.join("journal"), "kapi apply 1 under way\0take\0a\0");
    let error = recover(&project, &work).expect_err("damage");
    assert!(matches!(error, ApplyError::Journal { .. }), "{error}");
    assert_eq!(read(&site.project("a")), "one");
}

#[test]
fn verdicts_name_what_is_in_the_way() {
    assert!(PathVerdict::Conflict(ApplyConflict::GoneHere).is_obstacle());
    assert!(PathVerdict::Refused(ApplyRefusal::GitData).is_obstacle());
    assert!(!PathVerdict::Marked { n_locations: 1 }.is_obstacle());
}
