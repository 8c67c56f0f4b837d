//! Interviews that a new workflow might go on from: approved, unlinked, about the same things.
//!
//! Words only; whoever starts the workflow chooses.

use kapi_core::id::GoalId;
use kapi_core::mode::Mode;

use crate::rules::slug::keywords;

/// The least share of the purpose's keywords that must occur in an interview, in hundredths.
pub const SHARED_MIN: u32 = 30;

/// An approved interview that nothing was started from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ApprovedHandover {
    /// Which.
    pub id: GoalId,
    /// The goal of its spec.
    pub goal: String,
    /// The intent of its spec.
    pub intent: Vec<String>,
}

/// An interview that fits.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HandoverCandidate {
    /// Which.
    pub id: GoalId,
    /// The share of the purpose's keywords that occur in it, in hundredths.
    pub score: u32,
    /// Those keywords.
    pub shared: Vec<String>,
}

/// Returns the interviews that fit a purpose, best first, then by index.
#[must_use]
pub fn candidates(
    purpose: &str,
    mode: Mode,
    interviews: &[ApprovedHandover],
) -> Vec<HandoverCandidate> {
    let wanted = stems(purpose, mode);
    let mut fitting: Vec<HandoverCandidate> = interviews
        .iter()
        .filter_map(|interview| candidate(&wanted, mode, interview))
        .collect();
    fitting.sort_by(|one, other| (other.score, &one.id).cmp(&(one.score, &other.id)));
    fitting
}

fn candidate(
    wanted: &[String],
    mode: Mode,
    interview: &ApprovedHandover,
) -> Option<HandoverCandidate> {
    let slug = interview.id.slug().as_str();
    let text = format!("{slug} {} {}", interview.goal, interview.intent.join(" "));
    let known = stems(&text, mode);
    let mut shared = wanted.to_vec();
    shared.retain(|word| known.contains(word));
    let count = |words: &[String]| u32::try_from(words.len()).unwrap_or(u32::MAX);
    let score = (count(&shared).saturating_mul(100)).checked_div(count(wanted))?;
    (score >= SHARED_MIN).then(|| HandoverCandidate {
        id: interview.id.clone(),
        score,
        shared,
    })
}

/// Returns keywords without the ending that tells one from many.
fn stems(text: &str, mode: Mode) -> Vec<String> {
    let mut stems: Vec<String> = Vec::new();
    for word in keywords(text, mode) {
        let stem = match word.strip_suffix('s') {
            Some(stem) if stem.len() > 2 && !stem.ends_with('s') => stem.to_owned(),
            Some(_) | None => word,
        };
        if !stems.contains(&stem) {
            stems.push(stem);
        }
    }
    stems
}

#[cfg(test)]
mod tests {
    use kapi_core::id::GoalId;
    use kapi_core::mode::Mode;

    use super::{ApprovedHandover, candidates};

    fn check(purpose: &str, expected: &[(&str, u32)]) {
        let approved = |id: &str, goal: &str, intent: &str| ApprovedHandover {
            id: GoalId::parse(id).unwrap(),
            goal: goal.to_owned(),
            intent: vec![intent.to_owned()],
        };
        let interviews = [
            approved(
                "009-login-page",
                "People sign in on one page.",
                "Fewer calls",
            ),
            approved(
                "003-session-store",
                "Sessions outlive a crash of the store.",
                "Trust",
            ),
            approved(
                "005-session-token",
                "Tokens of sessions expire.",
                "Security audits",
            ),
        ];
        let found = candidates(purpose, Mode::Ralph, &interviews);
        let found: Vec<(String, u32)> = found.iter().map(|c| (c.id.to_string(), c.score)).collect();
        let expected: Vec<(String, u32)> = expected
            .iter()
            .map(|(id, score)| ((*id).to_owned(), *score))
            .collect();
        assert_eq!(found, expected, "{purpose}");
    }

    #[test]
    fn shared_keywords_make_a_candidate() {
        check(
            "the session",
            &[("003-session-store", 100), ("005-session-token", 100)],
        );
        check(
            "recover the sessions after a crash",
            &[("003-session-store", 66), ("005-session-token", 33)],
        );
        check(
            "session audit",
            &[("005-session-token", 100), ("003-session-store", 50)],
        );
        check("faster image resizing for thumbnails page previews", &[]);
        check("login", &[("009-login-page", 100)]);
        check("", &[]);
        check("ralph", &[]);
    }
}
