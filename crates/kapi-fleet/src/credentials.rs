//! The file by which a machine proves who it is: a signed statement and the seed of a key.
//!
//! Knows how it is laid out and how a server's challenge is signed. What is in it leaves this file
//! only as a signature and the statement, which is public.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::signature::Ed25519KeyPair;

use crate::error::FleetError;

/// The longest file that is taken for one.
const FILE_BYTES_MAX: u64 = 64 * 1024;
/// Two bytes that say what kind of key it is, the seed, and two bytes of checksum.
const SEED_BYTES: usize = 36;

/// A statement and the key that belongs to it.
pub(crate) struct SignedCredentials {
    /// The statement, as it is sent.
    pub(crate) statement: String,
    key: Ed25519KeyPair,
}

impl SignedCredentials {
    /// Reads the file.
    pub(crate) fn read(path: &Path) -> Result<Self, FleetError> {
        let of_file = |source| FleetError::File {
            path: path.to_path_buf(),
            source,
        };
        let mut text = String::new();
        let file = File::open(path).map_err(of_file)?;
        file.take(FILE_BYTES_MAX)
            .read_to_string(&mut text)
            .map_err(of_file)?;
        Self::parse(&text).map_err(|what| FleetError::Credentials {
            path: path.to_path_buf(),
            what,
        })
    }

    fn parse(text: &str) -> Result<Self, &'static str> {
        let statement = section(text, "NATS USER JWT").ok_or("it has no user statement")?;
        let seed = section(text, "USER NKEY SEED").ok_or("it has no user key seed")?;
        let bytes = base32(seed).ok_or("its seed is not in base 32")?;
        if bytes.len() != SEED_BYTES {
            return Err("its seed has another length");
        }
        let (body, checksum) = bytes.split_at(SEED_BYTES - 2);
        if crc16(body).to_le_bytes() != checksum {
            return Err("its seed has a typing error");
        }
        let seed = body.get(2..).unwrap_or_default();
        let key = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| "its seed is not a key")?;
        Ok(Self {
            statement: statement.to_owned(),
            key,
        })
    }

    /// Signs what the server asks to have signed.
    pub(crate) fn sign(&self, challenge: &str) -> String {
        URL_SAFE_NO_PAD.encode(self.key.sign(challenge.as_bytes()))
    }
}

/// Returns the line between `-----BEGIN name-----` and the line of dashes that follows.
fn section<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    let begin = format!("BEGIN {name}");
    let mut lines = text.lines().map(str::trim);
    lines.find(|line| line.trim_matches('-') == begin)?;
    lines.find(|line| !line.is_empty() && !line.starts_with("---"))
}

fn base32(text: &str) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let (mut held, mut n_bits) = (0_u32, 0_u32);
    for symbol in text.bytes() {
        let value = match symbol {
            b'A'..=b'Z' => symbol - b'A',
            b'2'..=b'7' => symbol - b'2' + 26,
            _ => return None,
        };
        held = (held << 5 | u32::from(value)) & 0xfff;
        n_bits += 5;
        if n_bits >= 8 {
            n_bits -= 8;
            bytes.push(u8::try_from(held >> n_bits & 0xff).ok()?);
        }
    }
    Some(bytes)
}

/// The checksum of XMODEM, which these keys end in.
fn crc16(bytes: &[u8]) -> u16 {
    bytes.iter().fold(0, |crc, &byte| {
        let mixed = crc ^ u16::from(byte) << 8;
        (0..8).fold(mixed, |crc, _| {
            if crc & 0x8000 == 0 {
                crc << 1
            } else {
                crc << 1 ^ 0x1021
            }
        })
    })
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::URL_SAFE_NO_PAD;
    use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

    use super::{SignedCredentials, base32, crc16};

    /// Writes a seed as its owner's tool would.
    fn seed_text(seed: [u8; 32]) -> String {
        let mut bytes = vec![(18 << 3) | (20 >> 2), (20 & 3) << 6];
        bytes.extend(seed);
        bytes.extend(crc16(&bytes).to_le_bytes());
        let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
        let symbols = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
        let groups: Vec<char> = bits.chars().collect();
        groups
            .chunks(5)
            .map(|chunk| {
                let padded = format!("{:0<5}", chunk.iter().collect::<String>());
                char::from(symbols[usize::from_str_radix(&padded, 2).unwrap()])
            })
            .collect()
    }

    fn file(seed: &str) -> String {
        format!(
            "-----BEGIN NATS USER JWT-----\nabc.def.ghi\n------END NATS USER JWT------\n\n\
             ***\nkeep it\n\n-----BEGIN USER NKEY SEED-----\n{seed}\n\
             ------END USER NKEY SEED------\n"
        )
    }

    #[test]
    fn a_challenge_is_signed_with_the_key_of_the_seed() {
        let text = seed_text([7; 32]);
        assert!(text.starts_with("SU"), "{text}");
        let credentials = SignedCredentials::parse(&file(&text)).unwrap();
        assert_eq!(credentials.statement, "abc.def.ghi");
        let signature = URL_SAFE_NO_PAD.decode(credentials.sign("nonce")).unwrap();
        let public = Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap();
        let public = UnparsedPublicKey::new(&ED25519, public.public_key().as_ref());
        public.verify(b"nonce", &signature).unwrap();
    }

    #[test]
    fn a_damaged_file_is_refused() {
        let good = seed_text([7; 32]);
        let typo = |at: usize| {
            let mut symbols = good.clone().into_bytes();
            symbols[at] = if symbols[at] == b'A' { b'B' } else { b'A' };
            String::from_utf8(symbols).unwrap()
        };
        for text in [
            String::new(),
            file("not base 32!"),
            file(&good[..20]),
            file(&typo(3)),
            file(&typo(30)),
        ] {
            assert!(SignedCredentials::parse(&text).is_err(), "{text}");
        }
        assert_eq!(base32("MZXW6"), Some(b"foo".to_vec()));
        assert_eq!(crc16(b"123456789"), 0x31c3);
    }
}
