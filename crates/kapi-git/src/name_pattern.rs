//! Whether a name fits a pattern as git reads one: `*`, `?` and `[…]`, and `\\` before a character that
//! means itself.
//!
//! Pure matching on bytes; knows no slash.

/// Tells whether a name fits a pattern, going back to the last `*` when it does not.
#[must_use]
pub fn name_matches(pattern: &[u8], name: &[u8]) -> bool {
    let (mut at, mut of) = (0, 0);
    let mut again: Option<(usize, usize)> = None;
    while of < name.len() {
        if pattern.get(at) == Some(&b'*') {
            again = Some((at + 1, of));
            at += 1;
            continue;
        }
        let fits = name.get(of).and_then(|&byte| one_fits(pattern, at, byte));
        if let Some(next) = fits {
            at = next;
            of += 1;
        } else if let Some((star, from)) = again {
            again = Some((star, from + 1));
            at = star;
            of = from + 1;
        } else {
            return false;
        }
    }
    pattern
        .get(at..)
        .unwrap_or_default()
        .iter()
        .all(|&b| b == b'*')
}

/// Returns where the pattern goes on if the part at `at` fits one byte.
fn one_fits(pattern: &[u8], at: usize, byte: u8) -> Option<usize> {
    match *pattern.get(at)? {
        b'?' => Some(at + 1),
        b'\\' => (*pattern.get(at + 1)? == byte).then_some(at + 2),
        b'[' => {
            let set = pattern.get(at + 1..)?;
            let (is_negated, start) = match set.first()? {
                b'!' | b'^' => (true, 1),
                _ => (false, 0),
            };
            // A bracket that comes first is one of the set.
            let close = set.iter().skip(start + 1).position(|&b| b == b']')? + start + 1;
            let is_in = set_holds(set.get(start..close)?, byte);
            (is_in != is_negated).then_some(at + 1 + close + 1)
        }
        literal => (literal == byte).then_some(at + 1),
    }
}

fn set_holds(set: &[u8], byte: u8) -> bool {
    let mut rest = set;
    while let Some((&first, after)) = rest.split_first() {
        if let [b'-', last, below @ ..] = after {
            if (first..=*last).contains(&byte) {
                return true;
            }
            rest = below;
        } else {
            if first == byte {
                return true;
            }
            rest = after;
        }
    }
    false
}
