//! `kapi doctor --modes`: whether the durable modes are ready, and what of theirs is not as it says.
//!
//! Everything is parsed and compared; that a file is there counts for nothing. Hindrances are kept
//! apart by class, so that one shows however well everything else stands.

mod records;
mod start;
mod surface;

use serde::Serialize;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// What kind of thing a probe is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Class {
    /// Whether a workflow can be started.
    Runtime,
    /// Whether logs, folds and snapshots parse and agree.
    EventSnapshot,
    /// Whether the commands are exactly those there should be.
    CommandSurface,
    /// Whether what is gone on with is this person's, and its worktrees are Kapi's own.
    Ownership,
    /// Whether the documents are there and say what the log says.
    Artifact,
    /// Whether nothing else claims to be the truth: inventory, directory names.
    SourceOfTruth,
}

impl Class {
    const ALL: [Self; 6] = [
        Self::Runtime,
        Self::EventSnapshot,
        Self::CommandSurface,
        Self::Ownership,
        Self::Artifact,
        Self::SourceOfTruth,
    ];

    const fn words(self) -> &'static str {
        match self {
            Self::Runtime => "runtime",
            Self::EventSnapshot => "event/snapshot",
            Self::CommandSurface => "command surface",
            Self::Ownership => "ownership",
            Self::Artifact => "artifact",
            Self::SourceOfTruth => "source of truth",
        }
    }
}

/// One probe.
#[derive(Debug, Serialize)]
pub(super) struct Probe {
    /// What it is about.
    pub(super) class: Class,
    /// What was looked at.
    pub(super) name: String,
    /// Whether it is as it should be.
    pub(super) ok: bool,
    /// How one sees it.
    pub(super) detail: String,
    /// What to do about it.
    pub(super) hint: Option<String>,
}

impl Probe {
    fn good(class: Class, name: &str, detail: impl Into<String>) -> Self {
        Self {
            class,
            name: name.to_owned(),
            ok: true,
            detail: detail.into(),
            hint: None,
        }
    }

    fn bad(class: Class, name: &str, detail: impl Into<String>) -> Self {
        Self {
            ok: false,
            ..Self::good(class, name, detail)
        }
    }

    fn with_hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

#[derive(Debug, Serialize)]
struct ModesView {
    ok: bool,
    probes: Vec<Probe>,
    /// How many hindrances there are of each class, those without any included.
    blockers: Vec<Blockers>,
}

#[derive(Debug, Serialize)]
struct Blockers {
    class: Class,
    count: usize,
}

/// What is to be done about records that are not what their log says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RepairChoice {
    /// Only to tell.
    Look,
    /// To write them again first.
    Mend,
}

impl RepairChoice {
    /// Returns what a flag asks for.
    pub(super) const fn of(mend: bool) -> Self {
        if mend { Self::Mend } else { Self::Look }
    }
}

/// Probes the modes.
pub(super) fn run(context: &Context, wish: RepairChoice) -> Result<Exit, Error> {
    if wish == RepairChoice::Mend {
        context.require_human("write records again")?;
    }
    let mut probes = surface::probes();
    probes.extend(start::probes(context));
    probes.extend(records::probes(context, wish)?);
    let of = |class: Class| {
        let bad = probes
            .iter()
            .filter(|probe| !probe.ok && probe.class == class);
        Blockers {
            class,
            count: bad.count(),
        }
    };
    let blockers = Class::ALL.map(of).into_iter().collect();
    let view = ModesView {
        ok: probes.iter().all(|probe| probe.ok),
        probes,
        blockers,
    };
    match context.ui.format {
        Format::Json => context.ui.json(&view),
        Format::Human => human(context, &view),
    }
    Ok(if view.ok { Exit::Success } else { Exit::Failed })
}

fn human(context: &Context, view: &ModesView) {
    let ui = context.ui;
    for probe in &view.probes {
        let mark = if probe.ok { "ok     " } else { "BLOCKED" };
        ui.line(&format!(
            "{mark}  {:<16} {:<28} {}",
            probe.class.words(),
            probe.name,
            probe.detail
        ));
        if let Some(hint) = &probe.hint {
            ui.line(&format!("         hint: {hint}"));
        }
    }
    let counts: Vec<String> = view
        .blockers
        .iter()
        .map(|blockers| format!("{} {}", blockers.class.words(), blockers.count))
        .collect();
    ui.line(&format!("blockers: {}", counts.join(", ")));
}
