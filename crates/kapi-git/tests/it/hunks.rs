//! Reading what changed in hunks, whatever the files are called and hold.

use std::path::Path;

use kapi_git::hunks::Hunk;
use kapi_git::id::CommitId;

use crate::fixture::{Fixture, shell};

fn made(fixture: &Fixture, command: &str) -> Vec<Hunk> {
    let base: CommitId = fixture.base();
    shell(&fixture.repo(), command);
    fixture.commit("change");
    let hunks = fixture.open().hunks(&base, &fixture.base());
    hunks.expect("hunks")
}

fn reported(hunk: &Hunk) -> String {
    let text = |lines: &[Vec<u8>]| String::from_utf8_lossy(&lines.concat()).into_owned();
    let path = hunk.path.display();
    let (removed, added) = (text(&hunk.removed), text(&hunk.added));
    format!("{path}:{} {removed:?} -> {added:?}", hunk.line)
}

#[test]
fn places_of_one_file_are_hunks_of_their_own() {
    let fixture = Fixture::new();
    made(&fixture, "seq 1 20 > n");
    let hunks = made(
        &fixture,
        "sed -i -e 2d -e 's/^9$/-- nine/' -e '15a ++ more' n; printf end >> n",
    );
    let reported: Vec<String> = hunks.iter().map(reported).collect();
    assert_eq!(
        reported,
        [
            r#"n:1 "2\n" -> """#,
            r#"n:8 "9\n" -> "-- nine\n""#,
            r#"n:15 "" -> "++ more\n""#,
            r#"n:21 "" -> "end""#,
        ]
    );
}

#[test]
fn any_name_and_any_content_is_a_hunk() {
    let fixture = Fixture::new();
    let hunks = made(
        &fixture,
        r#"echo x > 'with space'; echo x > 'a"quote\'; echo x > "$(printf 'line\nbreak')"
           printf 'é' > 'é'; : > empty; printf 'a\0b' > binary; chmod +x README; git rm -q src/main.txt"#,
    );
    let paths: Vec<&Path> = hunks.iter().map(|hunk| hunk.path.as_path()).collect();
    let expected = [
        "README",
        "a\"quote\\",
        "binary",
        "empty",
        "line\nbreak",
        "src/main.txt",
    ];
    let expected = expected.iter().chain(&["with space", "é"]).map(Path::new);
    assert_eq!(paths, expected.collect::<Vec<_>>());
    let of = |path: &str| hunks.iter().find(|hunk| hunk.path == Path::new(path));
    let readme = reported(of("README").expect("a hunk"));
    assert!(
        readme.contains("100644") && readme.contains("100755"),
        "{readme}"
    );
    assert_eq!(reported(of("é").expect("a hunk")), r#"é:1 "" -> "é""#);
    assert_eq!(
        reported(of("src/main.txt").expect("a hunk")),
        r#"src/main.txt:0 "one\n" -> """#
    );
}
