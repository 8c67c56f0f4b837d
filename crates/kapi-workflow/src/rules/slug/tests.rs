//! Names from purposes: the reference's table, and what happens when a name is taken.

use kapi_core::id::Slug;
use kapi_core::mode::Mode;
use proptest::prelude::{any, prop, proptest};

use crate::rules::slug::{RESERVED, derive};

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
    check("Ünïcode naïve login", &[], "uenicode-naive-login");
    check("로그인 고치기", &[], "rogeuin-gochigi");
    check("Исправить вход", &[], "ispravit-vkhod");
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
fn a_purpose_without_a_word_is_called_by_a_hash_of_itself() {
    let named = |purpose: &str, taken: &[Slug]| {
        let slug = derive(purpose, Mode::DeepInterview, taken).unwrap();
        slug.as_str().to_owned()
    };
    let of = |purpose: &str| named(purpose, &[]);
    let texts = [
        "002",
        "the of and",
        "🚀🚀",
        "deep interview",
        "42 7",
        "🚀",
        "status",
    ];
    for purpose in texts {
        let name = of(purpose);
        let digits = name.strip_prefix("workflow-").unwrap();
        assert!(
            digits.len() == 4 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{purpose}: {name}"
        );
        assert_eq!(of(purpose), name, "the same purpose has the same name");
    }
    assert_ne!(of("🚀"), of("🚀🚀"));
    assert_eq!(of(" 🚀 "), of("🚀"));
    for word in RESERVED {
        assert!(of(word).starts_with("workflow-"), "{word}");
    }
    let first = Slug::parse(&of("🚀")).unwrap();
    let second = named("🚀", std::slice::from_ref(&first));
    assert_eq!(second, format!("{first}-2"));
}

proptest! {
    #[test]
    fn every_name_is_free_and_begins_with_a_letter(
        purpose in "[a-z0-9 é語]{0,60}",
        taken in prop::collection::vec("[a-d]{1,2}(-[a-d]){0,4}", 0..20),
        any in any::<bool>(),
    ) {
        let mode = if any { Mode::Ralph } else { Mode::DeepInterview };
        let taken: Vec<Slug> = taken.iter().filter_map(|slug| Slug::parse(slug).ok()).collect();
        let slug = derive(&purpose, mode, &taken).unwrap();
        assert!(!taken.contains(&slug));
        assert!(slug.as_str().starts_with(|c: char| c.is_ascii_lowercase()));
        assert!(!RESERVED.contains(&slug.as_str()));
        let mut with = taken.clone();
        with.push(slug.clone());
        let other = derive(&purpose, mode, &with).unwrap();
        assert!(!with.contains(&other));
    }
}
