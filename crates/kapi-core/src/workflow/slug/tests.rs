//! Names from purposes: the reference's table, and what happens when a name is taken.

use proptest::prelude::{any, prop, proptest};

use crate::id::Slug;
use crate::workflow::mode::Mode;
use crate::workflow::slug::{RESERVED, SlugError, derive};

fn check(purpose: &str, taken: &[&str], expected: &str) {
    let taken: Vec<Slug> = taken
        .iter()
        .map(|slug| Slug::parse(slug).unwrap())
        .collect();
    let slug = derive(purpose, Mode::Ralph, &taken);
    assert_eq!(slug.unwrap().as_str(), expected, "{purpose:?}, {taken:?}");
}

#[test]
fn names_are_the_first_keywords() {
    check(
        "Recover the auth session after a crash",
        &[],
        "recover-auth-session-crash",
    );
    check(
        "Recover the auth session after a crash on mobile",
        &["recover-auth-session-crash"],
        "recover-auth-session-crash-mobile",
    );
    check(
        "one two three four five six seven eight nine",
        &[],
        "one-two-three-four-five",
    );
    check("ralph: fix Ralph's login", &[], "fix-login");
    check("2 fast 2 furious", &[], "fast-furious");
    check(
        "don't lose 'the users' sessions",
        &[],
        "lose-users-sessions",
    );
    check("status page", &[], "status-page");
    check("Ünïcode naïve login", &[], "login");
}

#[test]
fn a_taken_name_gives_way_to_a_more_telling_one_and_then_to_a_number() {
    let purpose = "add login page with remember token cookie";
    let first = "add-login-page-remember-token";
    let swapped = "login-page-remember-token-cookie";
    check(purpose, &[], first);
    check(purpose, &[first], swapped);
    check(purpose, &[first, swapped], "add-login-page-remember-2");
    let second = "add-login-page-remember-2";
    check(
        purpose,
        &[first, swapped, second],
        "add-login-page-remember-3",
    );
    check("fix login", &["fix-login"], "fix-login-2");
    check("session crash", &["session-crash"], "session-crash-2");
}

#[test]
fn a_purpose_without_a_name_is_refused_with_what_to_do() {
    let refused = |purpose: &str| derive(purpose, Mode::DeepInterview, &[]).unwrap_err();
    for purpose in [
        "002",
        "",
        "  ",
        "the of and",
        "日本語",
        "deep interview",
        "42 7",
    ] {
        assert!(
            matches!(refused(purpose), SlugError::NoKeyword { .. }),
            "{purpose}"
        );
    }
    for word in RESERVED {
        assert!(
            matches!(refused(word), SlugError::Reserved { .. }),
            "{word}"
        );
    }
    assert_eq!(
        refused("002").to_string(),
        "name a workflow after \"002\": it has no English keyword; say it with a few"
    );
}

proptest! {
    #[test]
    fn every_name_is_free_and_begins_with_a_letter(
        purpose in "[a-z0-9 é]{0,60}",
        taken in prop::collection::vec("[a-d]{1,2}(-[a-d]){0,4}", 0..20),
        any in any::<bool>(),
    ) {
        let mode = if any { Mode::Ralph } else { Mode::DeepInterview };
        let taken: Vec<Slug> = taken.iter().filter_map(|slug| Slug::parse(slug).ok()).collect();
        if let Ok(slug) = derive(&purpose, mode, &taken) {
            assert!(!taken.contains(&slug));
            assert!(slug.as_str().starts_with(|c: char| c.is_ascii_lowercase()));
            assert!(!RESERVED.contains(&slug.as_str()));
            let mut with = taken.clone();
            with.push(slug.clone());
            let other = derive(&purpose, mode, &with).unwrap();
            assert!(!with.contains(&other));
        }
    }
}
