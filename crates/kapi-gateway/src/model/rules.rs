//! What may be asked of a model: which one, and what the provider may do besides.
//!
//! Pure. Whoever makes the gateway says it; no request can.

use kapi_core::pattern;

/// What a run may ask of models.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CallRules {
    /// The models that may be asked, as names in which `*` and `?` stand for any characters; empty
    /// for any.
    pub models: Vec<String>,
    /// Whether the provider may reach beyond the request.
    pub provider_tools: ProviderTools,
}

/// Whether the provider itself may search, fetch, run code or read files for an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProviderTools {
    /// It may.
    Allowed,
    /// What asks it to is taken out of each request.
    TakenOut,
}

impl CallRules {
    /// Returns the rules of a run that may ask everything.
    #[must_use]
    pub const fn everything() -> Self {
        Self {
            models: Vec::new(),
            provider_tools: ProviderTools::Allowed,
        }
    }

    /// Tells whether a model may be asked.
    #[must_use]
    pub fn allows_model(&self, model: &str) -> bool {
        let fits = |rule: &String| pattern::is_name(rule, model);
        self.models.is_empty() || self.models.iter().any(fits)
    }
}

#[cfg(test)]
mod tests {
    use super::{CallRules, ProviderTools};

    #[test]
    fn models_are_named_whole_or_by_their_beginning() {
        let rules = |models: &[&str]| CallRules {
            models: models.iter().map(|&model| model.to_owned()).collect(),
            provider_tools: ProviderTools::TakenOut,
        };
        for (models, model, expected) in [
            (&[][..], "anything", true),
            (&["a"], "a", true),
            (&["a"], "a-2", false),
            (&["a"], "", false),
            (&["a-*", "b"], "a-2", true),
            (&["a-*", "b"], "b", true),
            (&["a-*", "b"], "a", false),
            (&["a-*-c"], "a-b-c", true),
            (&["a-??"], "a-12", true),
            (&["a-??"], "a-123", false),
            (&["*"], "", true),
        ] {
            assert_eq!(rules(models).allows_model(model), expected, "{models:?}");
        }
    }
}
