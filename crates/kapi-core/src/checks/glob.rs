//! Patterns of workspace members: `*` within a name, `**` for any directories, nothing else.
//!
//! What package managers add to that is rare in member lists, and a pattern that is not understood
//! matches nothing.

/// The most steps that one pattern takes on one path.
const STEPS_MAX: u32 = 10_000;

/// Tells whether a pattern matches a relative path.
pub(super) fn matches(pattern: &str, path: &str) -> bool {
    let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
    let pattern: Vec<&str> = pattern.split('/').collect();
    let path: Vec<&str> = path.split('/').collect();
    let mut steps = STEPS_MAX;
    is_path(&pattern, &path, &mut steps)
}

fn is_path(pattern: &[&str], path: &[&str], steps: &mut u32) -> bool {
    let Some(left) = steps.checked_sub(1) else {
        return false;
    };
    *steps = left;
    match (pattern.split_first(), path.split_first()) {
        (None, None) => true,
        (None, Some(_)) => false,
        (Some((&"**", rest)), _) => {
            is_path(rest, path, steps)
                || path
                    .split_first()
                    .is_some_and(|(_, below)| is_path(pattern, below, steps))
        }
        (Some(_), None) => false,
        (Some((name, rest)), Some((found, below))) => {
            is_name(name, found) && is_path(rest, below, steps)
        }
    }
}

fn is_name(pattern: &str, name: &str) -> bool {
    let mut parts = pattern.split('*');
    let first = parts.next().unwrap_or_default();
    let Some(mut rest) = name.strip_prefix(first) else {
        return false;
    };
    let Some(last) = parts.next_back() else {
        return rest.is_empty();
    };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = rest.get(at + part.len()..).unwrap_or_default(),
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn patterns_match_whole_names_and_any_directories() {
        for (pattern, path) in [
            ("packages/*", "packages/a"),
            ("./packages/*/", "packages/a"),
            ("crates/kapi-*", "crates/kapi-core"),
            ("*-x-*", "a-x-b"),
            ("apps/**", "apps/a/b"),
            ("**", "a/b/c"),
            ("**/ui", "a/b/ui"),
            ("a", "a"),
        ] {
            assert!(matches(pattern, path), "{pattern} {path}");
        }
        for (pattern, path) in [
            ("packages/*", "packages/a/b"),
            ("packages/*", "packages"),
            ("crates/kapi-*", "crates/other"),
            ("a", "a/b"),
            ("a/b", "a"),
            ("*a*a", "a"),
            ("../x", "x"),
        ] {
            assert!(!matches(pattern, path), "{pattern} {path}");
        }
    }

    #[test]
    fn a_hostile_pattern_ends() {
        let pattern = "**/".repeat(40) + "x";
        let path = vec!["a"; 40].join("/");
        assert!(!matches(&pattern, &path));
    }
}
