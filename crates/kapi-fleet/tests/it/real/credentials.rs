//! A file of credentials, as a cluster's owner makes it, lets in where only such files do.

use std::io::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use kapi_fleet::address::Authentication;
use kapi_fleet::error::FleetError;
use kapi_fleet::log::NetLog;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use crate::cluster::Cluster;
use crate::support::Writer;

/// What kind of key: the first byte of its public form.
const OPERATOR: u8 = 14 << 3;
const ACCOUNT: u8 = 0;
const USER: u8 = 20 << 3;
/// What a seed begins with, besides its kind.
const SEED: u8 = 18 << 3;
/// Whatever an account may have, without limits.
const LIMITS: &str = "\"subs\":-1,\"data\":-1,\"payload\":-1,\"imports\":-1,\"exports\":-1,\
    \"wildcards\":true,\"conn\":-1,\"leaf\":-1";
const JETSTREAM: &str = "\"mem_storage\":-1,\"disk_storage\":-1,\"streams\":-1,\"consumer\":-1";

struct Key {
    seed: [u8; 32],
    kind: u8,
}

impl Key {
    fn pair(&self) -> Ed25519KeyPair {
        Ed25519KeyPair::from_seed_unchecked(&self.seed).unwrap()
    }

    fn public(&self) -> String {
        let mut bytes = vec![self.kind];
        bytes.extend(self.pair().public_key().as_ref());
        text(bytes)
    }

    fn secret(&self) -> String {
        let mut bytes = vec![SEED | self.kind >> 5, (self.kind & 31) << 3];
        bytes.extend(self.seed);
        text(bytes)
    }

    /// Says something about a key, and signs it.
    fn state(&self, about: &Self, nats: &str) -> String {
        let head = URL_SAFE_NO_PAD.encode("{\"typ\":\"JWT\",\"alg\":\"ed25519-nkey\"}");
        let body = format!(
            "{{\"jti\":\"{0}\",\"iat\":1700000000,\"iss\":\"{1}\",\"name\":\"x\",\"sub\":\"{0}\",\"nats\":{nats}}}",
            about.public(),
            self.public()
        );
        let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(body));
        let signature = self.pair().sign(signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Adds the checksum and writes it in base 32.
fn text(mut bytes: Vec<u8>) -> String {
    let crc = bytes.iter().fold(0_u16, |crc, &byte| {
        let mixed = crc ^ (u16::from(byte) << 8);
        (0..8).fold(mixed, |crc, _| {
            let shifted = crc << 1;
            if crc & 0x8000 == 0 {
                shifted
            } else {
                shifted ^ 0x1021
            }
        })
    });
    bytes.extend(crc.to_le_bytes());
    let bits: String = bytes.iter().map(|byte| format!("{byte:08b}")).collect();
    let symbols = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
    bits.as_bytes()
        .chunks(5)
        .map(|chunk| {
            let padded = format!("{:0<5}", str::from_utf8(chunk).unwrap());
            char::from(symbols[usize::from_str_radix(&padded, 2).unwrap()])
        })
        .collect()
}

fn key(number: u8, kind: u8) -> Key {
    let seed = [number; 32];
    Key { seed, kind }
}

#[test]
fn a_file_of_credentials_lets_in_and_that_of_somebody_else_does_not() {
    let (operator, account) = (key(1, OPERATOR), key(2, ACCOUNT));
    let (system, user) = (key(3, ACCOUNT), key(4, USER));
    let of_account =
        |limits: &str| format!("{{\"limits\":{{{limits}}},\"type\":\"account\",\"version\":2}}");
    let more = format!(
        "operator: \"{}\"\nsystem_account: {}\nresolver: MEMORY\nresolver_preload: {{\n  {}: \"{}\"\n  {}: \"{}\"\n}}\n",
        operator.state(&operator, "{\"type\":\"operator\",\"version\":2}"),
        system.public(),
        account.public(),
        operator.state(&account, &of_account(&format!("{LIMITS},{JETSTREAM}"))),
        system.public(),
        operator.state(&system, &of_account(LIMITS)),
    );
    let cluster = Cluster::with(1, &more);
    let statement = account.state(
        &user,
        "{\"subs\":-1,\"data\":-1,\"payload\":-1,\"type\":\"user\",\"version\":2}",
    );
    let dir = tempfile::tempdir().unwrap();
    let open = |seed: &str| {
        let path = dir.path().join("kapi.creds");
        let text = format!(
            "-----BEGIN NATS USER JWT-----\n{statement}\n------END NATS USER JWT------\n\n\
             -----BEGIN USER NKEY SEED-----\n{seed}\n------END USER NKEY SEED------\n"
        );
        let mut file = std::fs::File::create(&path).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        let mut settings = cluster.settings();
        settings.address.proof = Authentication::File(path);
        NetLog::open(settings, "shop", "kernel")
    };
    let mut writer = Writer::new("w", open(&user.secret()).unwrap());
    writer.append(0);
    // The same statement with a key that is not the one it speaks of.
    let Err(error) = open(&key(5, USER).secret()) else {
        panic!("somebody else is let in");
    };
    assert!(matches!(error, FleetError::NotLetIn { .. }), "{error:?}");
    assert!(!format!("{error:?}").contains(&statement), "{error:?}");
}
