//! Links that lead out of the repository get into no commit, from a worktree or from a layer.
//!
//! Each script runs in both, over a base that has such links already; both have to say the same.

use kapi_git::candidate::{Candidate, CandidatePlan};
use kapi_git::id::RefPart;

use crate::fixture::{Fixture, changed, commit, listing, refused, shell, turn, write};
use crate::layer_fixture::LayerFixture;

/// Makes a base with links that stay inside, links that leave, and a submodule.
fn fixture() -> Fixture {
    let fixture = Fixture::new();
    shell(
        &fixture.repo(),
        "mkdir lib; echo a > lib/a; ln -s /opt/tool tool; ln -s ../shared lib/up; ln -s a lib/in
         ln -s ../../far far",
    );
    fixture.git(&["add", "-A"]);
    let submodule = format!("160000,{},sub", fixture.base());
    fixture.git(&["update-index", "--add", "--cacheinfo", &submodule]);
    fixture.git(&["commit", "-q", "-m", "links"]);
    fixture
}

/// Runs a script both ways; returns the fixture and the candidate that both gave.
#[track_caller]
fn both(fixture: Fixture, script: &str) -> (Fixture, Candidate) {
    let (repository, workspace) = fixture.workspace();
    shell(&workspace.path, script);
    let expected = commit(&repository, &workspace);
    let layer = LayerFixture::on(fixture);
    layer.inside(script);
    let made = layer.commit();
    assert_eq!(made.candidate, expected, "{script}");
    assert_eq!(made.notes, [], "{script}");
    (layer.fixture, expected)
}

#[track_caller]
fn check(script: &str, expected_changes: &[&str], expected_refusals: &[&str]) {
    let (_, made) = both(fixture(), script);
    assert_eq!(changed(&made), expected_changes, "{script}");
    assert_eq!(refused(&made), expected_refusals, "{script}");
}

#[test]
fn a_new_link_that_leaves_is_refused_and_one_that_stays_is_taken() {
    check(
        "mkdir -p d/e; ln -s /etc/passwd abs; ln -s ../x climb; ln -s ../../x d/climb
         ln -s \"$PWD/README\" own; ln -s .git/config git; ln -s ../../.GIT/hooks d/e/git
         ln -s README fine; ln -s ../../README d/e/fine; ln -s nowhere d/gone; ln -s . loop",
        &["d/e/fine Added", "d/gone Added", "fine Added", "loop Added"],
        &[
            "abs EscapingLink",
            "climb EscapingLink",
            "d/climb EscapingLink",
            "d/e/git EscapingLink",
            "git EscapingLink",
            "own EscapingLink",
        ],
    );
}

#[test]
fn a_link_that_leaves_by_way_of_another_is_refused() {
    check(
        "mkdir -p d/e; ln -s .. d/e/up; ln -s up/../../x d/e/out; ln -s d/e/up a; ln -s a/../../x b",
        &["a Added", "d/e/up Added"],
        &["b EscapingLink", "d/e/out EscapingLink"],
    );
}

#[test]
fn links_of_the_base_stay_as_long_as_they_are_what_they_were() {
    // Written anew, copied up, or beside a change: the base has them, whatever they lead to.
    check(
        "touch -h tool lib/up; rm far; ln -s ../../far far; echo b > lib/a",
        &["lib/a Modified"],
        &[],
    );
    check(
        "rm tool; mv lib/in in",
        &["in Added", "lib/in Deleted", "tool Deleted"],
        &[],
    );
    // At another place it is another link.
    check(
        "mv tool lib/tool",
        &["tool Deleted"],
        &["lib/tool EscapingLink"],
    );
}

#[test]
fn the_base_stands_where_a_link_that_leaves_took_its_place() {
    let script = "ln -sf /etc/passwd README; ln -sf ../../x src/main.txt; ln -sfn /opt/other tool
                  ln -sfn /etc lib/in; ln -sfn a lib/up; echo new > new";
    let (fixture, made) = both(fixture(), script);
    assert_eq!(changed(&made), ["lib/up Modified", "new Added"]);
    assert_eq!(
        refused(&made),
        [
            "README EscapingLink",
            "lib/in EscapingLink",
            "src/main.txt EscapingLink",
            "tool EscapingLink"
        ]
    );
    let show = |path: &str| fixture.git(&["show", &format!("{}:{path}", made.commit)]);
    assert_eq!(show("README"), "hello");
    assert_eq!(show("src/main.txt"), "one");
    assert_eq!(show("tool"), "/opt/tool");
    assert_eq!(show("lib/in"), "a");
    assert_eq!(show("lib/up"), "a");
    let lines = listing(&fixture, made.commit.as_str());
    assert!(lines.contains(&"100644 README".to_owned()), "{lines:?}");
}

#[test]
fn a_directory_that_became_a_link_out_is_gone() {
    check(
        "rm -r src; ln -s /etc src",
        &["src/main.txt Deleted"],
        &["src EscapingLink"],
    );
    check(
        "rm -rf sub; ln -s /etc sub; echo two > src/main.txt",
        &["src/main.txt Modified"],
        &["sub InSubmodule"],
    );
}

#[test]
fn a_link_that_git_ignores_is_not_named() {
    check(
        "mkdir build; ln -s /etc build/etc; ln -s /etc x.tmp; ln -s /etc etc",
        &[""; 0],
        &["etc EscapingLink"],
    );
}

#[test]
fn rules_for_files_are_those_of_the_base_where_a_link_out_took_their_place() {
    for (base, expected) in [
        ("*.txt text eol=crlf\n", "one\ntwo"),
        ("*.txt -text\n", "one\r\ntwo"),
    ] {
        let fixture = Fixture::new();
        write(&fixture.repo().join(".gitattributes"), base);
        fixture.commit("attributes");
        let (fixture, made) = both(
            fixture,
            "ln -sf /etc/attributes .gitattributes; ln -s /etc/attributes src/.gitattributes
             printf 'one\\r\\ntwo\\r\\n' > src/main.txt",
        );
        assert_eq!(
            refused(&made),
            [
                ".gitattributes EscapingLink",
                "src/.gitattributes EscapingLink"
            ],
        );
        let stored = fixture.git(&["show", &format!("{}:src/main.txt", made.commit)]);
        assert_eq!(stored.trim_end(), expected, "{base}");
    }
}

#[test]
fn interrupted_work_is_kept_without_links_that_leave() {
    let fixture = fixture();
    let script = "ln -s /etc etc; echo half > half";
    let plan = CandidatePlan {
        name: RefPart::parse("turn-9").expect("name"),
        ..turn(1)
    };
    let (repository, workspace) = fixture.workspace();
    let known = repository.tree_of(&fixture.base()).expect("tree");
    shell(&workspace.path, "ln -s /etc etc");
    let nothing = repository
        .rescue(&workspace, &plan, &known)
        .expect("rescue");
    assert_eq!(nothing, None, "a link that leaves is no work to keep");
    shell(&workspace.path, "rm etc");
    shell(&workspace.path, script);
    let kept = repository
        .rescue(&workspace, &plan, &known)
        .expect("rescue");
    let kept = kept.expect("a commit");
    let lines = listing(&fixture, kept.as_str());
    assert!(lines.contains(&"100644 half".to_owned()), "{lines:?}");
    assert!(!lines.contains(&"120000 etc".to_owned()), "{lines:?}");
}
