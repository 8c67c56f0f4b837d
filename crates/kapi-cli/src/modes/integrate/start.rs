//! How an integration is started: `dev` is there or is made because its person asked for it, the sources are
//! fit, and everything else is as in every mode.

use kapi_core::integration_branch::IntegrationBranch;
use kapi_core::mode::Mode;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_workflow::perform::combine::fit::create_target;
use kapi_workflow::record::start::NewWorkflow;
use kapi_workflow::rules::modes::Begin;
use kapi_workflow::rules::modes::integrate::begin::IntegrateBegin;
use kapi_workflow::rules::modes::integrate::leave::IntegrateLeave;
use kapi_workflow::rules::modes::integrate::source::Source;
use kapi_workflow::rules::terms::PlanApproval;

use super::sources::sources;
use crate::commands::workflow::start::{StartedRun, begun};
use crate::config::Config;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::workflow::driving::NOTHING_ASKED;
use crate::workflow::terms::{self, TermFlags};

/// What an integration is started with.
pub(super) struct IntegrateRequest<'a> {
    /// What was named.
    pub(super) named: &'a [String],
    /// Who works with what.
    pub(super) flags: &'a TermFlags,
    /// Where dev is made, if there is none.
    pub(super) create_dev: Option<&'a str>,
    /// What is allowed besides.
    pub(super) leave: IntegrateLeave,
    /// Whether it is only made.
    pub(super) no_drive: bool,
}

/// Starts an integration.
pub(super) fn run(context: &Context, wanted: &IntegrateRequest<'_>) -> Result<Exit, Error> {
    context.require_human("start a workflow")?;
    if wanted.flags.base.is_some() {
        return Err(Error::usage(
            "an integration always begins at dev, so --base has no meaning",
        ));
    }
    let grants = context.grants(&Config::unconfigured());
    let survey = RepositorySurvey::of(&grants, &context.cwd);
    let survey = survey.map_err(|failure| Error::world(&failure))?;
    let project = context.project(&survey.root(), "kapi integrate");
    context.require_own_state(project.layout.root())?;
    let there = survey.integration_branch();
    let there = there.map_err(|failure| Error::world(&failure))?;
    let target = match (there, wanted.create_dev) {
        (Some(target), _) => target,
        // Where it will be, so that sources are refused before anything is made.
        (None, Some(revision)) => {
            let base = survey.base(revision);
            base.map_err(|failure| Error::world(&failure))?.commit
        }
        (None, None) => return Err(no_target()),
    };
    let sources = sources(context, &project, wanted.named, &target)?;
    if let Some(revision) = wanted.create_dev {
        let made = create_target(&grants, project.layout.root(), revision);
        if let Some(at) = made.map_err(|failure| Error::world(&failure))? {
            let dev = IntegrationBranch::DEV;
            context
                .ui
                .say(&format!("Branch {dev} is made at {at}, from {revision}."));
        }
    }
    let purpose = purpose(&sources);
    let ask = PlanApproval::Ask;
    let drawn = terms::draw(context, Mode::Integrate, wanted.flags, &purpose, ask)?;
    for note in &drawn.notes {
        context.ui.say(&format!("note: {note}"));
    }
    let new = NewWorkflow {
        purpose,
        terms: drawn.terms,
        begin: Begin::Integrate(IntegrateBegin {
            target,
            sources,
            leave: wanted.leave,
            rules: context.config(Some(project.layout.root()))?.conflict_rules,
        }),
    };
    let run = StartedRun {
        first: Vec::new(),
        settle: NOTHING_ASKED,
        watch: None,
        no_drive: wanted.no_drive,
    };
    begun(context, project, &new, run)
}

fn no_target() -> Error {
    let dev = IntegrationBranch::DEV;
    Error::new(
        Exit::Denied,
        format!("there is no branch {dev} to bring finished work together on"),
    )
    .with_hint(format!(
        "make it with `git branch {dev} main`, or add `--create-dev main`; main itself is never touched."
    ))
}

/// Names the sources by what they are for, which is what its branch is called after.
fn purpose(sources: &[Source]) -> String {
    let names: Vec<String> = sources
        .iter()
        .map(|source| source.id.slug().to_string().replace('-', " "))
        .collect();
    format!("Integrate {}", names.join(", "))
}
