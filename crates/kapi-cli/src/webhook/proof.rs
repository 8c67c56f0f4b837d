//! Whether a caller knows the secret: by a signature over the body, or as a bearer.
//!
//! Compared in constant time. The secret is never shown.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::MetadataExt as _;

use kapi_gateway::http::head::Headers;
use ring::hmac;

use crate::config::webhook::SecretLocation;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// The header of a signature, as GitHub sends it.
const SIGNATURE: &str = "X-Hub-Signature-256";
/// A shorter secret could be guessed.
const SECRET_BYTES_MIN: usize = 16;
/// The longest secret.
const SECRET_BYTES_MAX: u64 = 4_096;

/// Proves calls.
#[derive(Clone)]
pub(crate) struct CallProof {
    key: hmac::Key,
    /// The signature of the secret itself, which a bearer must have too.
    bearer: hmac::Tag,
}

impl CallProof {
    /// Reads the secret.
    pub(crate) fn read(context: &Context, location: &SecretLocation) -> Result<Self, Error> {
        let text = match location {
            SecretLocation::Variable(name) => {
                let said = context.env.get(OsStr::new(name));
                let said = said.and_then(|value| value.to_str()).map(str::to_owned);
                said.ok_or_else(|| Error::usage(format!("the variable {name} is not set")))?
            }
            SecretLocation::File(path) => {
                let failed = |error: std::io::Error| {
                    let text = format!("failed to read {}: {error}", path.display());
                    Error::new(Exit::Failed, text)
                };
                let found = fs::metadata(path).map_err(failed)?;
                if found.mode() & 0o077 != 0 {
                    let text = format!("others can read the secret in {}", path.display());
                    let hint = format!("chmod 600 {}", path.display());
                    return Err(Error::new(Exit::Denied, text).with_hint(hint));
                }
                if !found.is_file() || found.len() > SECRET_BYTES_MAX {
                    let text = format!("{} is not a regular file of at most 4 KiB", path.display());
                    return Err(Error::usage(text));
                }
                fs::read_to_string(path).map_err(failed)?
            }
        };
        Self::of(text.trim_end_matches(['\r', '\n'])).ok_or_else(|| {
            let text = format!("the webhook's secret is shorter than {SECRET_BYTES_MIN} bytes");
            Error::usage(text).with_hint("make one with `openssl rand -hex 32`.")
        })
    }

    fn of(secret: &str) -> Option<Self> {
        if secret.len() < SECRET_BYTES_MIN {
            return None;
        }
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
        let bearer = hmac::sign(&key, secret.as_bytes());
        Some(Self { key, bearer })
    }

    /// Tells whether a caller showed that it knows the secret. One wrong proof is enough to refuse.
    pub(crate) fn is_given(&self, headers: &Headers, body: &[u8]) -> bool {
        let mut signatures = headers.all(SIGNATURE);
        let mut bearers = headers.all("Authorization");
        let proofs = [
            (signatures.next(), signatures.next().is_none()),
            (bearers.next(), bearers.next().is_none()),
        ];
        match proofs {
            [(Some(signature), true), (None, _)] => self.is_signature(signature, body),
            [(None, _), (Some(bearer), true)] => self.is_bearer(bearer),
            [(Some(signature), true), (Some(bearer), true)] => {
                self.is_signature(signature, body) && self.is_bearer(bearer)
            }
            _ => false,
        }
    }

    fn is_signature(&self, said: &[u8], body: &[u8]) -> bool {
        let digits = said.strip_prefix(b"sha256=").and_then(bytes_of);
        digits.is_some_and(|tag| hmac::verify(&self.key, body, &tag).is_ok())
    }

    fn is_bearer(&self, said: &[u8]) -> bool {
        let text = said.strip_prefix(b"Bearer ");
        text.is_some_and(|text| hmac::verify(&self.key, text, self.bearer.as_ref()).is_ok())
    }
}

fn bytes_of(digits: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(digits).ok()?;
    let is_hex = text.len() == 64 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let pairs = (0..text.len()).step_by(2).filter(|_| is_hex);
    let bytes: Vec<u8> = pairs
        .filter_map(|at| u8::from_str_radix(text.get(at..at + 2)?, 16).ok())
        .collect();
    is_hex.then_some(bytes)
}

#[cfg(test)]
mod tests {
    use kapi_gateway::http::head::Headers;

    use super::CallProof;

    /// What GitHub's documentation gives as an example.
    const SECRET: &str = "It's a Secret to Everybody";
    const BODY: &[u8] = b"Hello, World!";
    const SIGNED: &str = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";

    fn is_given(lines: &[(&str, &str)], body: &[u8]) -> bool {
        let mut headers = Headers::default();
        for (name, value) in lines {
            headers.add(name, value.as_bytes());
        }
        CallProof::of(SECRET).unwrap().is_given(&headers, body)
    }

    #[test]
    fn a_signature_or_a_bearer_proves_and_nothing_else_does() {
        let bearer = format!("Bearer {SECRET}");
        let signed = ("x-hub-signature-256", SIGNED);
        assert!(is_given(&[signed], BODY));
        assert!(is_given(&[("authorization", &bearer)], BODY));
        assert!(is_given(&[signed, ("authorization", &bearer)], BODY));
        assert!(!is_given(&[signed], b"Hello, World?"));
        assert!(!is_given(&[], BODY));
        assert!(
            !is_given(&[signed, signed], BODY),
            "two readers could take either"
        );
        assert!(!is_given(&[signed, ("authorization", "Bearer x")], BODY));
        let cut = SIGNED.get(..60).unwrap();
        for wrong in [
            "",
            "sha256=",
            "sha1=757107ea",
            cut,
            &SIGNED.replace('7', "8"),
        ] {
            assert!(
                !is_given(&[("x-hub-signature-256", wrong)], BODY),
                "{wrong}"
            );
        }
        for wrong in ["", "Bearer ", "Basic x", SECRET] {
            assert!(!is_given(&[("authorization", wrong)], BODY), "{wrong}");
        }
        assert!(CallProof::of("too short").is_none());
    }
}
