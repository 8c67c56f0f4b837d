//! Where dependencies may come from that a change asks for, and what is asked when more is wanted.
//!
//! Clients of registries do not always say which hosts they ask. A host that was refused is a
//! question to a person; the answer holds for the one goal or command that asked.

use std::collections::BTreeSet;

use kapi_core::isolation::NetworkMode;
use serde::{Deserialize, Serialize};

/// What a question about registries begins with.
const QUESTION: &str = "dependencies from ";

/// What can be reached where dependencies are installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Downloads {
    /// How much of the network.
    pub network: NetworkMode,
    /// Registries that a person allowed besides, as `host:port`.
    pub registries: Vec<String>,
}

/// Dependencies that could not be installed though lock files of the change name them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lacking {
    /// Why, in one sentence without a final period.
    pub why: String,
    /// Hosts that were refused meanwhile, as `host:port`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub refused: Vec<String>,
}

impl Downloads {
    /// Returns what a network mode alone allows.
    #[must_use]
    pub const fn within(network: NetworkMode) -> Self {
        Self {
            network,
            registries: Vec::new(),
        }
    }

    /// Returns what a network mode and a person's answers allow together.
    #[must_use]
    pub fn allowed(network: NetworkMode, answers: &BTreeSet<String>) -> Self {
        let hosts = answers.iter().filter_map(|it| it.strip_prefix(QUESTION));
        let hosts = hosts.flat_map(|hosts| hosts.split(", "));
        Self {
            network,
            registries: hosts.map(str::to_owned).collect(),
        }
    }
}

impl Lacking {
    /// Returns what a person is asked to allow; nothing where no host was refused.
    #[must_use]
    pub fn question(&self) -> Option<String> {
        (!self.refused.is_empty()).then(|| format!("{QUESTION}{}", self.refused.join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use kapi_core::isolation::NetworkMode;

    use super::{Downloads, Lacking};

    #[test]
    fn an_answer_allows_the_hosts_that_were_asked_for_and_nothing_else() {
        let lacking = |refused: &[&str]| Lacking {
            why: String::new(),
            refused: refused.iter().map(|&host| host.to_owned()).collect(),
        };
        assert_eq!(lacking(&[]).question(), None);
        let asked = lacking(&["a.example:443", "b.example:80"]).question();
        let answers = [asked.unwrap(), "git push".to_owned()].into();
        let downloads = Downloads::allowed(NetworkMode::Filtered, &answers);
        assert_eq!(downloads.registries, ["a.example:443", "b.example:80"]);
    }
}
