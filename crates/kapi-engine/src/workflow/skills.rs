//! The guidance texts, part of the program: what an agent is given in each phase.
//!
//! Which text belongs where is decided by core's table; here are only the words.

/// One text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Skill {
    /// Its name, as in core's table.
    pub name: &'static str,
    /// The whole text, front matter included.
    pub text: &'static str,
}

/// Every text there is.
pub const SKILLS: &[Skill] = &[
    Skill {
        name: "deep-interview",
        text: include_str!("../../../../skills/deep-interview/SKILL.md"),
    },
    Skill {
        name: "ralplan",
        text: include_str!("../../../../skills/ralplan/SKILL.md"),
    },
    Skill {
        name: "ralph",
        text: include_str!("../../../../skills/ralph/SKILL.md"),
    },
    Skill {
        name: "code-review",
        text: include_str!("../../../../skills/code-review/SKILL.md"),
    },
    Skill {
        name: "code-simplifier",
        text: include_str!("../../../../skills/code-simplifier/SKILL.md"),
    },
];

/// Returns a text with its front matter.
#[must_use]
pub fn text(name: &str) -> Option<&'static str> {
    let found = SKILLS.iter().find(|skill| skill.name == name)?;
    Some(found.text)
}

/// Returns a text as an agent is given it, without its front matter.
#[must_use]
pub fn body(name: &str) -> Option<&'static str> {
    let text = text(name)?;
    let rest = text.strip_prefix("---\n")?;
    let (_, body) = rest.split_once("\n---\n")?;
    Some(body.trim_start())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use kapi_core::workflow::guidance::TABLE;

    use super::{SKILLS, body};

    const LINES_MAX: usize = 120;

    #[test]
    fn every_text_of_the_table_is_there_and_none_is_unused() {
        let wanted: BTreeSet<&str> = TABLE
            .iter()
            .flat_map(|row| row.documents)
            .copied()
            .collect();
        let there: BTreeSet<&str> = SKILLS.iter().map(|skill| skill.name).collect();
        assert_eq!(there, wanted);
        assert_eq!(there.len(), SKILLS.len(), "no name is given twice");
    }

    #[test]
    fn every_text_says_what_it_is_and_is_short() {
        for skill in SKILLS {
            let (front, _) = skill.text.split_once("\n---\n").unwrap();
            let lines: Vec<&str> = front.lines().collect();
            assert_eq!(lines[..2], ["---", &format!("name: {}", skill.name)]);
            assert_eq!(lines[3], "owner: kapi", "{}", skill.name);
            let version = lines[2].strip_prefix("version: ").unwrap();
            assert!(version.parse::<u32>().unwrap() > 0, "{}", skill.name);
            assert!(lines[4].starts_with("description: ") && lines.len() == 5);
            assert!(skill.text.lines().count() <= LINES_MAX, "{}", skill.name);
            assert!(
                body(skill.name).unwrap().starts_with("# "),
                "{}",
                skill.name
            );
        }
        assert_eq!(body("autopilot"), None);
    }

    #[test]
    fn reviews_look_at_correctness_first_and_at_simplicity_last() {
        let review = body("code-review").unwrap();
        let places: Vec<usize> = [
            "Correctness.",
            "Regression.",
            "Missing test.",
            "Artifact alignment.",
            "Verification gap.",
            "Simplification",
        ]
        .iter()
        .map(|word| review.find(&format!("**{word}")).unwrap())
        .collect();
        assert!(places.is_sorted(), "{places:?}");
    }
}
