//! Who the person is, as git is configured for them.
//!
//! Read as a remote's address is: from their own settings, which no sandbox can write.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

use crate::author::Author;
use crate::repository::Repository;

impl Repository {
    /// Returns the person's name and address: those of their environment, or of their settings;
    /// `None` where they set none.
    #[must_use]
    pub fn person(&self, environment: &BTreeMap<OsString, OsString>) -> Option<Author> {
        let said = |variable: &str, key: &str| -> Option<String> {
            let variable = environment.get(OsStr::new(variable));
            let text = match variable.and_then(|value| value.to_str()) {
                Some(text) => text.to_owned(),
                None => {
                    let call = self.call("config").for_person(environment);
                    let exit = call.args(["--get", key]).exit().ok()?;
                    String::from_utf8_lossy(&exit.stdout).into_owned()
                }
            };
            let text = text.trim();
            let is_plain = !text.is_empty() && !text.contains(['<', '>', '\n']);
            is_plain.then(|| text.to_owned())
        };
        Some(Author {
            name: said("GIT_AUTHOR_NAME", "user.name")?,
            email: said("GIT_AUTHOR_EMAIL", "user.email")?,
        })
    }
}
