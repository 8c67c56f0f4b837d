//! What a dashboard tells besides the work that is alive: what waits for a person, money, sandboxes.
//!
//! Headings and lines, as they are shown.

/// What is told besides.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Overview {
    /// What the screen is of.
    pub(crate) title: String,
    /// What is told, in its order.
    pub(crate) panels: Vec<Panel>,
}

/// Some lines under a heading.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Panel {
    /// The heading.
    pub(crate) heading: String,
    /// The lines.
    pub(crate) lines: Vec<String>,
}
