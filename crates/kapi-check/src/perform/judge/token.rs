//! The token of one question: what shows that a verdict was given on it and nowhere else.
//!
//! Made after everything that is judged was written, so nothing in there can hold it.

use std::fs;
use std::io::Read as _;
use std::path::Path;

use kapi_core::failure::Failure;
use kapi_run::failure;
use kapi_run::grant::{Cassettes, Grant};
use sha2::{Digest as _, Sha256};

use crate::rules::proof::judge_prompt::TOKEN_MARK;

/// The variable that holds the token of the question, for a person's own program.
pub(crate) const TOKEN_VARIABLE: &str = "KAPI_JUDGE_TOKEN";
/// Bytes of a token.
const TOKEN_BYTES: usize = 8;

/// Makes up the token of a question.
///
/// Where the model's traffic is recorded or played back, the token follows from the run: another
/// one each time would fit no recording.
pub(crate) fn token(grant: &Grant, run_id: &str) -> Result<String, Failure> {
    let mut bytes = [0_u8; TOKEN_BYTES];
    match &grant.cassettes {
        None => random(&mut bytes)?,
        Some(Cassettes::Record(_) | Cassettes::Replay(_)) => {
            for (byte, hashed) in bytes.iter_mut().zip(Sha256::digest(run_id)) {
                *byte = hashed;
            }
        }
    }
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Puts a token into the instructions of its question.
pub(crate) fn sealed(instructions: &str, token: &str) -> String {
    instructions.replace(TOKEN_MARK, token)
}

fn random(bytes: &mut [u8]) -> Result<(), Failure> {
    let path = Path::new("/dev/urandom");
    fs::File::open(path)
        .and_then(|mut source| source.read_exact(bytes))
        .map_err(|error| failure::file("read", path, &error))
}

#[cfg(test)]
mod tests {
    use kapi_run::grant::{Cassettes, Grant};

    use super::{sealed, token};

    #[test]
    fn no_two_questions_have_the_same_token_unless_they_are_played_back() {
        let grant = Grant::default();
        let (one, other) = (token(&grant, "r").unwrap(), token(&grant, "r").unwrap());
        assert_ne!(one, other);
        assert_eq!(one.len(), 16);
        let taped = |cassettes| Grant {
            cassettes: Some(cassettes),
            ..Grant::default()
        };
        let recorded = token(&taped(Cassettes::Record("/t".into())), "r").unwrap();
        let replayed = token(&taped(Cassettes::Replay("/t".into())), "r").unwrap();
        assert_eq!(recorded, replayed);
    }

    #[test]
    fn the_instructions_name_it() {
        let text = sealed(&crate::rules::proof::judge_prompt::instructions(), "7f3a");
        assert_eq!(text.matches("7f3a").count(), 2);
        assert!(!text.contains("{{"));
    }
}
