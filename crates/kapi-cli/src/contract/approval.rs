//! Approving a contract: in advance, at a terminal, or later by its hash.
//!
//! Nobody's silence is an approval. What an approval leads to is the core's affair.

use kapi_check::perform::hidden;
use kapi_core::id::GoalId;
use kapi_goal::record::contract_hash::contract_hash;
use kapi_goal::record::project::Project;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::contract::Contract;
use kapi_goal::rules::event::{ApprovalMeans, GoalEvent};
use kapi_machine::logged::EventRecord;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Hexadecimal digits that name a contract's hash at least.
pub(crate) const HASH_DIGITS_MIN: usize = 12;
/// Hexadecimal digits of a whole hash.
const HASH_DIGITS: usize = 64;

/// Returns how the person approved before they were asked: by `--yes`, or by their own recorded
/// preference for this project.
pub(crate) fn in_advance(
    context: &Context,
    project: &Project<'_>,
    yes: bool,
) -> Result<Option<ApprovalMeans>, Error> {
    if yes {
        return Ok(Some(ApprovalMeans::YesFlag));
    }
    context.require_human("approve a contract")?;
    let preferred = context.preferred(project.layout.root())?;
    Ok(preferred.autopilot.map(|_| {
        context.ui.say(
            "note: approved by your autopilot preference; turn it off with `kapi goal autopilot off`.",
        );
        ApprovalMeans::Autopilot
    }))
}

/// Records an approval of the contract that was shown, with its hidden checks taken over first.
pub(crate) fn approve(
    context: &Context,
    project: &Project<'_>,
    id: &GoalId,
    shown: &Contract,
    means: ApprovalMeans,
) -> Result<Vec<EventRecord<GoalEvent>>, Error> {
    let failed = |error| Error::engine(&error, &id.to_string());
    let contract_hash = contract_hash(shown).map_err(failed)?;
    if let Some(checks) = &shown.hidden {
        hidden::keep(checks, &context.location(project, id)?.hidden)
            .map_err(|failure| Error::world(&failure))?;
    }
    let command = GoalCommand::Approve {
        contract_hash,
        means,
    };
    project
        .submit(id, &context.actor, &command)
        .map(|submitted| submitted.recorded)
        .map_err(failed)
}

/// Checks that what a person names is the hash of the contract on record, or its beginning.
pub(crate) fn check_hash(named: &str, recorded: &str) -> Result<(), Error> {
    if !is_hash(named) {
        return Err(Error::usage(format!(
            "{named:?} is not a hash of {HASH_DIGITS_MIN} to {HASH_DIGITS} hexadecimal digits"
        ))
        .with_hint(format!("the contract's hash is {recorded}.")));
    }
    if recorded.starts_with(&named.to_ascii_lowercase()) {
        return Ok(());
    }
    Err(Error::new(
        Exit::Denied,
        format!("the contract's hash is {recorded}, not {named}"),
    )
    .with_hint("review it with `kapi show`, then approve its current hash."))
}

/// Tells whether a text can name a hash.
pub(crate) fn is_hash(named: &str) -> bool {
    (HASH_DIGITS_MIN..=HASH_DIGITS).contains(&named.len())
        && named.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Returns how a contract was approved, in words.
pub(crate) const fn words(means: ApprovalMeans) -> &'static str {
    match means {
        ApprovalMeans::Terminal => "at a terminal",
        ApprovalMeans::YesFlag => "with --yes",
        ApprovalMeans::NamedHash => "by its hash",
        ApprovalMeans::Autopilot => "by the autopilot preference",
        ApprovalMeans::Plan => "with its workflow's plan",
        ApprovalMeans::Client => "in an agent client's dialog",
    }
}

/// Returns the line that approves a goal's contract.
pub(crate) fn line(id: &GoalId, hash: &str) -> String {
    let digits = hash.get(..HASH_DIGITS_MIN).unwrap_or(hash);
    format!("kapi goal approve {:03} --hash {digits}", id.reference())
}

#[cfg(test)]
mod tests {
    use super::check_hash;

    #[test]
    fn a_hash_is_named_by_its_beginning_or_whole() {
        let recorded = format!("0123456789ab{}", "c".repeat(52));
        for good in [&recorded[..12], "0123456789AB", &recorded[..40], &recorded] {
            assert!(check_hash(good, &recorded).is_ok(), "{good}");
        }
        for (bad, word) in [
            ("0123456789a", "is not a hash"),
            ("", "is not a hash"),
            ("0123456789ax", "is not a hash"),
            (&format!("{recorded}0"), "is not a hash"),
            ("0123456789ac", ", not 0123456789ac"),
        ] {
            let error = check_hash(bad, &recorded).unwrap_err();
            assert!(error.message.contains(word), "{bad}: {error}");
            let shown = format!("{error} {}", error.hint.as_deref().unwrap());
            assert!(shown.contains(&recorded) && shown.contains(bad), "{shown}");
        }
    }
}
