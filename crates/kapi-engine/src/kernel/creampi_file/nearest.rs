//! The known word that somebody may have meant.

/// Returns the known word nearest to what was written, if any is near.
pub(super) fn nearest<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let written = plain(written);
    let far = (written.len() / 3).max(1);
    known
        .iter()
        .map(|known| (distance(&written, &plain(known)), *known))
        .min()
        .filter(|(distance, _)| *distance <= far)
        .map(|(_, known)| known)
}

/// Case and the marks between words do not count.
fn plain(word: &str) -> Vec<char> {
    let word = word.chars().filter(|c| !matches!(c, '_' | '-' | ' ' | '.'));
    word.flat_map(char::to_lowercase).take(64).collect()
}

/// Counts the characters to add, remove, replace, or swap with their neighbour.
fn distance(one: &[char], other: &[char]) -> usize {
    let first: Vec<usize> = (0..=other.len()).collect();
    let mut rows: Vec<Vec<usize>> = vec![first];
    for (idx, a) in one.iter().enumerate() {
        let mut row = vec![idx + 1];
        for (column, b) in other.iter().enumerate() {
            let above = &rows[idx];
            let replaced = above[column] + usize::from(a != b);
            let mut least = replaced.min(above[column + 1] + 1).min(row[column] + 1);
            if idx > 0 && column > 0 && *a == other[column - 1] && one[idx - 1] == *b {
                least = least.min(rows[idx - 1][column - 1] + 1);
            }
            row.push(least);
        }
        rows.push(row);
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::{distance, nearest};

    #[test]
    fn distances_are_counted() {
        for (one, other, expected) in [
            ("", "", 0),
            ("a", "", 1),
            ("kitten", "sitting", 3),
            ("modle", "model", 1),
        ] {
            let chars = |text: &str| text.chars().collect::<Vec<char>>();
            assert_eq!(distance(&chars(one), &chars(other)), expected);
            assert_eq!(distance(&chars(other), &chars(one)), expected);
        }
    }

    #[test]
    fn only_what_is_near_is_meant() {
        let known = ["maxConcurrency", "defaultAgent", "provider"];
        for (written, expected) in [
            ("max_concurrency", Some("maxConcurrency")),
            ("maxConcurency", Some("maxConcurrency")),
            ("defaultAgents", Some("defaultAgent")),
            ("providr", Some("provider")),
            ("colour", None),
            ("", None),
        ] {
            assert_eq!(nearest(written, &known), expected, "{written}");
        }
    }
}
