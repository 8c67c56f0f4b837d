//! `[kernel.webhook]`: where calls that trigger loops are taken, and the secret that proves them.
//!
//! Only the person's file has it. Says where the secret is; it is read when it is needed.

use std::net::SocketAddr;
use std::path::PathBuf;

use kapi_settings::fault::Faults;
use kapi_settings::setting::Setting;
use serde::Deserialize;

/// `[kernel.webhook]`.
#[derive(Debug, Clone, Deserialize)]
pub(crate) struct WebhookTable {
    listen: Setting<String>,
    secret_file: Option<Setting<PathBuf>>,
    secret_env: Option<String>,
    #[serde(default)]
    beyond_loopback: bool,
}

/// Where calls are taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Webhook {
    /// The address.
    pub(crate) listen: SocketAddr,
    /// Where the secret is.
    pub(crate) secret: SecretLocation,
}

/// Where the secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SecretLocation {
    /// In this file.
    File(PathBuf),
    /// In this variable.
    Variable(String),
}

/// Takes what the person's file says.
pub(crate) fn read(said: &Setting<WebhookTable>, faults: &mut Faults) -> Option<Webhook> {
    let table = &said.value;
    let listen: Option<SocketAddr> = table.listen.value.parse().ok();
    match listen {
        None => {
            let remedy = "write it as \"127.0.0.1:8787\"";
            faults.at(&table.listen, "it is not an address with a port", remedy);
        }
        Some(listen) if !listen.ip().is_loopback() && !table.beyond_loopback => {
            let what = "other machines could reach it";
            let remedy = "listen on 127.0.0.1, or set `beyond_loopback = true` to allow this";
            faults.at(&table.listen, what, remedy);
        }
        Some(_) => {}
    }
    let secret = match (&table.secret_file, &table.secret_env) {
        (Some(path), None) if path.value.is_absolute() => SecretLocation::File(path.value.clone()),
        (Some(path), None) => {
            let remedy = "give an absolute path outside every project";
            faults.at(path, "it is not an absolute path", remedy);
            return None;
        }
        (None, Some(name)) => SecretLocation::Variable(name.clone()),
        (Some(_), Some(_)) | (None, None) => {
            let remedy = "set either `secret_file` or `secret_env`";
            faults.at(said, "it needs exactly one secret", remedy);
            return None;
        }
    };
    Some(Webhook {
        listen: listen?,
        secret,
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use kapi_settings::fault::Faults;
    use kapi_settings::setting::Setting;
    use kapi_settings::{read as settings, toml};

    use super::{SecretLocation, WebhookTable, read};

    fn said(text: &str) -> Result<super::Webhook, String> {
        let mut faults = Faults::of("config.toml".to_owned());
        let root = toml::parse(&format!("[w]\n{text}"), &mut faults).unwrap();
        let tables: BTreeMap<String, Setting<WebhookTable>> =
            settings::read(&root, &mut faults).unwrap();
        let read = read(&tables["w"], &mut faults);
        faults
            .instead_of(read)
            .map_err(|faults| faults[0].to_string())
    }

    #[test]
    fn a_webhook_listens_on_loopback_and_has_one_secret() {
        let found = said("listen = \"127.0.0.1:1\"\nsecret_env = \"S\"").unwrap();
        assert_eq!(found.secret, SecretLocation::Variable("S".to_owned()));
        assert!(said("listen = \"[::1]:1\"\nsecret_file = \"/s\"").is_ok());
        assert!(
            said("listen = \"0.0.0.0:1\"\nsecret_file = \"/s\"\nbeyond_loopback = true").is_ok()
        );
        for (text, words) in [
            (
                "listen = \"0.0.0.0:1\"\nsecret_env = \"S\"",
                "other machines could reach it",
            ),
            (
                "listen = \"localhost\"\nsecret_env = \"S\"",
                "it is not an address",
            ),
            ("listen = \"127.0.0.1:1\"", "it needs exactly one secret"),
            (
                "listen = \"127.0.0.1:1\"\nsecret_file = \"s\"",
                "it is not an absolute path",
            ),
        ] {
            let message = said(text).unwrap_err();
            assert!(message.contains(words), "{message}");
        }
    }
}
