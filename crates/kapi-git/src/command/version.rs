//! The version in the words of every vendor's git.
//!
//! Reads text only; which version is new enough is not known here.

/// Returns major and minor version, of what `git version` says.
pub(super) fn version_of(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split(|c: char| !c.is_ascii_digit());
    let major = numbers.next()?.parse().ok()?;
    let minor = numbers.next()?.parse().ok()?;
    Some((major, minor))
}

#[cfg(test)]
mod tests {
    use super::version_of;

    #[test]
    fn version_is_read_from_every_vendors_format() {
        for (text, expected) in [
            ("2.47.3", Some((2, 47))),
            ("2.39.5 (Apple Git-154)", Some((2, 39))),
            ("2.45.1.windows.1", Some((2, 45))),
            ("3.0.0-rc1", Some((3, 0))),
            ("unknown", None),
            ("2", None),
        ] {
            assert_eq!(version_of(text), expected, "{text}");
        }
    }
}
