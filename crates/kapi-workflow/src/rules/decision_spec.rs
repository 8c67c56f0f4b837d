//! What a person decides in a mode, as data.

/// What a person is asked to decide, as data of its mode.
#[derive(Debug, PartialEq, Eq)]
pub struct DecisionSpec {
    /// The name as it stands in `snapshot.json`.
    pub name: &'static str,
    /// The artifacts that it is about; one at least.
    pub artifacts: &'static [&'static str],
    /// What a list of what waits calls it.
    pub inbox: &'static str,
    /// What an approval gives leave for.
    pub gives: GrantedBy,
    /// What exactly happens when it is approved.
    pub on_yes: &'static str,
}

/// What an approval gives leave for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GrantedBy {
    /// Nothing is run by it.
    Nothing,
    /// Work is done and lands.
    Work,
}
