//! What differs between two texts, line by line, in the form that `diff -u` made known.
//!
//! For people's edits of documents: small texts, exact up to a size and whole beyond it.

/// Lines around a change that are shown.
const CONTEXT: usize = 2;
/// The most pairs of lines that are compared; beyond that the middle is shown as replaced.
const PAIRS_MAX: usize = 4_000_000;

/// One line of a difference.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Line<'a> {
    Same(&'a str),
    Gone(&'a str),
    New(&'a str),
}

/// Returns what has to be changed in `before` to make `after` of it; nothing where they are the same.
#[must_use]
pub fn difference(before: &str, after: &str) -> String {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.lines().collect(), after.lines().collect());
    let lines = compared(&before, &after);
    let is_change = |line: &Line<'_>| !matches!(line, Line::Same(_));
    let near = |at: usize| {
        let from = at.saturating_sub(CONTEXT);
        let to = at.saturating_add(CONTEXT + 1).min(lines.len());
        lines
            .get(from..to)
            .unwrap_or_default()
            .iter()
            .any(is_change)
    };
    let mut text = String::new();
    let mut is_open = false;
    let (mut old, mut new) = (1_usize, 1_usize);
    for (at, line) in lines.iter().enumerate() {
        if near(at) {
            if !is_open {
                let place = format!("@@ line {old} of the draft, {new} of the edit @@\n");
                text.push_str(&place);
            }
            let (sign, words) = match line {
                Line::Same(words) => (' ', words),
                Line::Gone(words) => ('-', words),
                Line::New(words) => ('+', words),
            };
            text.push(sign);
            text.push_str(words);
            text.push('\n');
        }
        is_open = near(at);
        old += usize::from(!matches!(line, Line::New(_)));
        new += usize::from(!matches!(line, Line::Gone(_)));
    }
    text
}

fn compared<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<Line<'a>> {
    let n_first = before.iter().zip(after).take_while(|(a, b)| a == b).count();
    let (head, before) = before.split_at(n_first);
    let (_, after) = after.split_at(n_first);
    let pairs = before.iter().rev().zip(after.iter().rev());
    let n_last = pairs.take_while(|(a, b)| a == b).count();
    let (before, tail) = before.split_at(before.len() - n_last);
    let (after, _) = after.split_at(after.len() - n_last);
    let mut lines: Vec<Line<'a>> = head.iter().map(|line| Line::Same(line)).collect();
    if before.len().saturating_mul(after.len()) > PAIRS_MAX {
        lines.extend(before.iter().map(|line| Line::Gone(line)));
        lines.extend(after.iter().map(|line| Line::New(line)));
    } else {
        lines.extend(middle(before, after));
    }
    lines.extend(tail.iter().map(|line| Line::Same(line)));
    lines
}

/// Compares by the longest lines in common.
fn middle<'a>(before: &[&'a str], after: &[&'a str]) -> Vec<Line<'a>> {
    let width = after.len() + 1;
    let mut common = vec![0_u32; (before.len() + 1) * width];
    let length = |common: &[u32], old: usize, new: usize| {
        common.get(old * width + new).copied().unwrap_or(0)
    };
    for (old, gone) in before.iter().enumerate().rev() {
        for (new, come) in after.iter().enumerate().rev() {
            let most = if gone == come {
                length(&common, old + 1, new + 1) + 1
            } else {
                length(&common, old + 1, new).max(length(&common, old, new + 1))
            };
            if let Some(place) = common.get_mut(old * width + new) {
                *place = most;
            }
        }
    }
    let (mut old, mut new) = (0, 0);
    let mut lines = Vec::new();
    loop {
        match (before.get(old), after.get(new)) {
            (Some(gone), Some(come)) if gone == come => {
                lines.push(Line::Same(gone));
                (old, new) = (old + 1, new + 1);
            }
            (Some(gone), come)
                if come.is_none()
                    || length(&common, old + 1, new) >= length(&common, old, new + 1) =>
            {
                lines.push(Line::Gone(gone));
                old += 1;
            }
            (_, Some(come)) => {
                lines.push(Line::New(come));
                new += 1;
            }
            (_, None) => return lines,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::{prop_assert_eq, proptest};

    use super::{Line, compared, difference};

    #[test]
    fn a_change_is_shown_with_what_is_around_it() {
        let before = "a\nb\nc\nd\ne\nf\ng\nh\ni\n";
        let after = "a\nb\nc\nD\ne\nf\ng\nh\ni\nj\n";
        assert_eq!(
            difference(before, after),
            "@@ line 2 of the draft, 2 of the edit @@\n b\n c\n-d\n+D\n e\n f\n\
             @@ line 8 of the draft, 8 of the edit @@\n h\n i\n+j\n"
        );
        assert_eq!(difference(before, before), "");
        assert_eq!(
            difference("", "a"),
            "@@ line 1 of the draft, 1 of the edit @@\n+a\n"
        );
        assert_eq!(
            difference("a", ""),
            "@@ line 1 of the draft, 1 of the edit @@\n-a\n"
        );
    }

    proptest! {
        #[test]
        fn both_texts_can_be_read_from_it(before in "[ab\n]{0,40}", after in "[ab\n]{0,40}") {
            let (before, after): (Vec<&str>, Vec<&str>) =
                (before.lines().collect(), after.lines().collect());
            let lines = compared(&before, &after);
            let old: Vec<&str> = lines.iter().filter_map(|line| match line {
                Line::Same(text) | Line::Gone(text) => Some(*text),
                Line::New(_) => None,
            }).collect();
            let new: Vec<&str> = lines.iter().filter_map(|line| match line {
                Line::Same(text) | Line::New(text) => Some(*text),
                Line::Gone(_) => None,
            }).collect();
            prop_assert_eq!(old, before);
            prop_assert_eq!(new, after);
        }
    }
}
