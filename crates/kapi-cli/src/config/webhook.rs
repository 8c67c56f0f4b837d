//! `[kernel.webhook]`: where calls that set loops off are taken, and the secret that proves them.
//!
//! Only the person's file has it. Says where the secret is; it is read when it is needed.

use std::net::SocketAddr;
use std::path::PathBuf;

use serde::Deserialize;

use crate::config::source::Text;
use crate::error::Error;

/// `[kernel.webhook]`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WebhookTable {
    listen: String,
    secret_file: Option<PathBuf>,
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
    pub(crate) secret: SecretPlace,
}

/// Where the secret is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum SecretPlace {
    /// In this file.
    File(PathBuf),
    /// In this variable.
    Variable(String),
}

/// Takes what the person's file says.
pub(crate) fn read(file: &Text<'_>, table: WebhookTable) -> Result<Webhook, Error> {
    let wrong = |key: &str, what: &str, hint: &str| {
        let key = format!("kernel.webhook{key}");
        Error::usage(format!("{}: `{key}`: {what}", file.at(&key))).with_hint(hint.to_owned())
    };
    let address = "write it as \"127.0.0.1:8787\".";
    let listen: SocketAddr = table
        .listen
        .parse()
        .map_err(|_| wrong(".listen", "it is no address with a port", address))?;
    if !listen.ip().is_loopback() && !table.beyond_loopback {
        let what = "other machines could call it";
        let hint = "listen on 127.0.0.1, or say `beyond_loopback = true` if you mean it.";
        return Err(wrong(".listen", what, hint));
    }
    let secret = match (table.secret_file, table.secret_env) {
        (Some(path), None) if path.is_absolute() => SecretPlace::File(path),
        (Some(_), None) => {
            let hint = "give the whole path, outside of every project.";
            return Err(wrong(".secret_file", "it is no absolute path", hint));
        }
        (None, Some(name)) => SecretPlace::Variable(name),
        (Some(_), Some(_)) | (None, None) => {
            let hint = "give either `secret_file` or `secret_env`.";
            return Err(wrong("", "it needs one secret", hint));
        }
    };
    Ok(Webhook { listen, secret })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::Path;

    use super::{SecretPlace, read};
    use crate::config::source::Text;

    fn said(text: &str) -> Result<super::Webhook, String> {
        let lines = BTreeMap::new();
        let file = Text {
            path: Path::new("config.toml"),
            lines: &lines,
        };
        read(&file, toml::from_str(text).unwrap()).map_err(|error| error.message)
    }

    #[test]
    fn a_webhook_listens_on_loopback_and_has_one_secret() {
        let found = said("listen = \"127.0.0.1:1\"\nsecret_env = \"S\"").unwrap();
        assert_eq!(found.secret, SecretPlace::Variable("S".to_owned()));
        assert!(said("listen = \"[::1]:1\"\nsecret_file = \"/s\"").is_ok());
        assert!(
            said("listen = \"0.0.0.0:1\"\nsecret_file = \"/s\"\nbeyond_loopback = true").is_ok()
        );
        for (text, words) in [
            (
                "listen = \"0.0.0.0:1\"\nsecret_env = \"S\"",
                "other machines could call it",
            ),
            (
                "listen = \"localhost\"\nsecret_env = \"S\"",
                "it is no address",
            ),
            ("listen = \"127.0.0.1:1\"", "it needs one secret"),
            (
                "listen = \"127.0.0.1:1\"\nsecret_file = \"s\"",
                "it is no absolute path",
            ),
        ] {
            let message = said(text).unwrap_err();
            assert!(message.contains(words), "{message}");
        }
    }
}
