//! What a workflow may use, from flags and configuration: the same parties and limits as `kapi run`.
//!
//! Creates nothing. Whether a repository is needed, and who else is asked, is the mode's table.

use clap::FromArgMatches as _;
use kapi_core::judge::Judge;
use kapi_core::mode::Mode;
use kapi_goal::perform::survey::RepositorySurvey;
use kapi_goal::rules::budget::Budget;
use kapi_goal::rules::contract::{Contract, TURNS_DEFAULT, TURNS_MAX};
use kapi_workflow::rules::mode_spec::{ModeSpec, ParticipantNeed, RepositoryNeed};
use kapi_workflow::rules::terms::{PlanApproval, WorkflowTerms};

use crate::commands::workflow::branch;
use crate::config::Config;
use crate::config::deliver::DeliverArgs;
use crate::config::grant::{LEVEL_DEFAULT, NETWORK_DEFAULT};
use crate::context::Context;
use crate::contract::{self, agent_name, flags, isolation, judge, models, participants};
use crate::error::Error;
use crate::{amount, container, help, naming};

/// Goals that are driven at once when nothing else was said.
const JOBS_DEFAULT: u32 = 2;
/// Goals that may be driven at once.
const JOBS_MAX: u32 = 32;
/// Milliseconds one question to an agent may take.
const QUESTION_TIMEOUT_MS: u64 = 30 * 60 * 1000;
/// Milliseconds one verify command may take, where no repository says otherwise.
const VERIFY_TIMEOUT_MS: u64 = 30 * 60 * 1000;

/// Options that say who works with what.
#[derive(Debug, Clone, Default, clap::Args)]
pub(crate) struct TermFlags {
    /// Agent that asks, plans and works: claude, codex, gemini, pi, 'acp:COMMAND', 'command:SHELL' or
    /// 'script:FILE.yaml'
    #[arg(long, value_name = "AGENT")]
    pub(crate) agent: Option<String>,
    /// Model of the agent, in its own spelling; others are refused [default: as configured]
    #[arg(long, value_name = "MODEL")]
    pub(crate) model: Option<String>,
    /// Agent that challenges plans and reviews work [default: same as --agent]
    #[arg(long, value_name = "AGENT")]
    pub(crate) reviewer: Option<String>,
    /// Judge of each goal: another agent, provider/model, 'same' or 'none'
    #[arg(long, value_name = "JUDGE")]
    pub(crate) judge: Option<String>,
    #[arg(help = help::with_default("Isolation level", LEVEL_DEFAULT), long, value_name = "LEVEL", value_enum)]
    pub(crate) sandbox: Option<flags::Sandbox>,
    #[arg(help = help::with_default("Network access besides the model", NETWORK_DEFAULT), long, value_name = "MODE", value_enum)]
    pub(crate) network: Option<flags::Network>,
    #[arg(help = help::with_default("Maximum number of agent turns per goal", TURNS_DEFAULT), long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(TURNS_MAX)))]
    pub(crate) turns: Option<u32>,
    /// Token limit of the whole workflow (500k, 2M)
    #[arg(long, value_name = "N", value_parser = amount::parse_count)]
    pub(crate) tokens: Option<u64>,
    /// Cost limit of the whole workflow in US dollars
    #[arg(long, value_name = "USD", value_parser = amount::parse_usd_micros)]
    pub(crate) usd: Option<u64>,
    /// Working-time limit of the whole workflow (90m, 2h)
    #[arg(long, value_name = "TIME", value_parser = amount::parse_duration_ms)]
    pub(crate) wall: Option<u64>,
    #[arg(help = help::with_default("Number of goals to run in parallel", JOBS_DEFAULT), long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(JOBS_MAX)))]
    pub(crate) jobs: Option<u32>,
    /// Shell command that every goal and the whole must pass (repeatable)
    #[arg(long, value_name = "COMMAND", value_parser = flags::shell_command)]
    pub(crate) verify: Vec<String>,
    /// Files no goal may change, such as 'tests/**' (repeatable)
    #[arg(long, value_name = "GLOB")]
    pub(crate) protect: Vec<String>,
    /// Revision to start from [default: HEAD]
    #[arg(long, value_name = "REVISION")]
    pub(crate) base: Option<String>,
    #[command(flatten)]
    pub(crate) deliver: DeliverArgs,
}

/// What a workflow is started with.
#[derive(Debug)]
pub(crate) struct StartOptions {
    /// What it may use.
    pub(crate) terms: WorkflowTerms,
    /// The project: the repository's top level, or the working directory without one.
    pub(crate) root: std::path::PathBuf,
    /// The commit it starts from; `None` without a repository.
    pub(crate) commit: Option<String>,
    /// What the person should know.
    pub(crate) notes: Vec<String>,
}

/// Draws up what a workflow may use.
pub(crate) fn draw(
    context: &Context,
    mode: Mode,
    flags: &TermFlags,
    purpose: &str,
    plan_approval: PlanApproval,
) -> Result<StartOptions, Error> {
    let outside = context.grants(&Config::unconfigured());
    let survey = RepositorySurvey::of(&outside, &context.cwd);
    let spec = spec_of(mode)?;
    refuse_unused(spec, flags)?;
    match (survey, spec.repository) {
        (Ok(survey), RepositoryNeed::Optional) if survey.base("HEAD").is_err() => {
            without_commit(context, spec, flags, survey.root())
        }
        (Ok(survey), repository) => {
            let mut args = as_run(spec, flags, purpose)?;
            if repository == RepositoryNeed::Optional {
                // It makes no branch, so none can be in its way.
                args.branch_type = naming::open_type(&survey);
            }
            let mut drawn = with_repository(context, spec, flags, &args, plan_approval)?;
            if repository == RepositoryNeed::Required {
                drawn.notes.extend(branch::notes(&survey));
                if let Some(commit) = &drawn.commit {
                    let note = branch::beside_integration(&survey, commit)?;
                    drawn.notes.extend(note);
                }
            }
            Ok(drawn)
        }
        (Err(_), RepositoryNeed::Optional) => {
            without_commit(context, spec, flags, context.cwd.clone())
        }
        (Err(failure), RepositoryNeed::Required) => Err(Error::world(&failure).with_hint(
            "it works on a branch: create a repository with `git init`, commit your files, \
                 and start again.",
        )),
    }
}

/// Refuses the options that would change nothing in a mode.
fn refuse_unused(spec: &ModeSpec, flags: &TermFlags) -> Result<(), Error> {
    let has_judge = spec.judge == ParticipantNeed::Asked;
    let has_reviewer = spec.reviewer == ParticipantNeed::Asked;
    let has_branch = spec.repository == RepositoryNeed::Required;
    let names_judge = flags.judge.as_deref().is_some_and(|judge| judge != "none");
    let unused = [
        ("--judge", names_judge && !has_judge),
        ("--reviewer", flags.reviewer.is_some() && !has_reviewer),
        ("--verify", !flags.verify.is_empty() && !has_branch),
        ("--protect", !flags.protect.is_empty() && !has_branch),
        ("--push", flags.deliver.push && !has_branch),
        ("--pr", flags.deliver.pr && !has_branch),
    ];
    let Some((option, _)) = unused.iter().find(|(_, is_unused)| *is_unused) else {
        return Ok(());
    };
    let hint = if has_branch {
        format!("omit `{option}`.")
    } else {
        format!("an interview builds nothing; use it with `kapi ralph --from N {option} …`.")
    };
    let text = format!("{option} has no effect in `kapi {}`", spec.mode);
    Err(Error::usage(text).with_hint(hint))
}

/// Returns the table of a mode.
pub(crate) fn spec_of(mode: Mode) -> Result<&'static ModeSpec, Error> {
    let missing = || Error::usage(format!("{mode} is not available yet"));
    ModeSpec::of(mode).ok_or_else(missing)
}

fn with_repository(
    context: &Context,
    spec: &ModeSpec,
    flags: &TermFlags,
    args: &flags::Args,
    plan_approval: PlanApproval,
) -> Result<StartOptions, Error> {
    let draft = contract::draft_for_agent(context, args)?;
    contract::check(context, &draft.config, &draft.contract)?;
    let mut notes = draft.notes;
    if spec.judge == ParticipantNeed::NotAsked {
        // It makes nothing that somebody could judge.
        notes.retain(|note| !note.starts_with(judge::NOBODY));
    }
    let reviewer = reviewer(context, flags)?;
    if let Some(reviewer) = &reviewer {
        let theirs = Contract {
            agent: reviewer.clone(),
            judge: Judge::None,
            ..draft.contract.clone()
        };
        contract::check(context, &draft.config, &theirs)?;
    } else if spec.reviewer == ParticipantNeed::Asked {
        notes.push(
            "SAME AGENT: the same agent objects and reviews; name another with `--reviewer`. \
             Each report lists this as a risk."
                .to_owned(),
        );
    }
    let agents = models::agents_of(&draft.contract.agent, &draft.contract.judge);
    let models = models::approved(&draft.config, agents.chain(reviewer.as_deref()));
    let Contract {
        agent,
        judge,
        sandbox,
        network,
        budget,
        verify,
        verify_timeout_ms,
        protect,
        base,
        delivery,
        ..
    } = draft.contract;
    Ok(StartOptions {
        root: draft.root,
        commit: Some(base.commit),
        notes,
        terms: WorkflowTerms {
            agent,
            reviewer,
            models,
            judge,
            sandbox,
            network,
            tokens: budget.tokens,
            usd_micros: budget.usd_micros,
            wall_ms: flags.wall,
            budget,
            jobs: flags.jobs.unwrap_or(JOBS_DEFAULT),
            verify_timeout_ms,
            question_timeout_ms: QUESTION_TIMEOUT_MS,
            protect,
            verify,
            delivery,
            plan_approval,
        },
    })
}

/// A mode that goes without, where there is nothing to look facts up in.
fn without_commit(
    context: &Context,
    spec: &ModeSpec,
    flags: &TermFlags,
    root: std::path::PathBuf,
) -> Result<StartOptions, Error> {
    let mut config = context.config(Some(&root))?;
    let args = as_run(spec, flags, "")?;
    let (sandbox, network) = isolation::level_and_network(&args, &config)?;
    let mut notes =
        vec!["There is no commit to look facts up in, so you will be asked everything.".to_owned()];
    let agent = participants::agent(context, &config, flags.agent.as_ref(), sandbox, &mut notes)?;
    models::choose(&mut config, &agent, flags.model.as_deref())?;
    let table = &config.goal;
    let grants = context.grants(&config);
    container::check(&grants, sandbox)?;
    kapi_run::asking::check_agent(&grants, &agent, sandbox)
        .map_err(|failure| Error::world(&failure))?;
    let budget = Budget {
        turns: flags.turns.or(table.turns).unwrap_or(TURNS_DEFAULT),
        tokens: flags.tokens.or(table.tokens),
        usd_micros: flags.usd,
        wall_ms: None,
    };
    let reviewer = reviewer(context, flags)?;
    let agents = std::iter::once(agent.as_str()).chain(reviewer.as_deref());
    Ok(StartOptions {
        terms: WorkflowTerms {
            models: models::approved(&config, agents),
            agent,
            reviewer,
            judge: Judge::None,
            sandbox,
            network,
            tokens: budget.tokens,
            usd_micros: budget.usd_micros,
            wall_ms: flags.wall,
            budget,
            jobs: flags.jobs.unwrap_or(JOBS_DEFAULT),
            verify_timeout_ms: VERIFY_TIMEOUT_MS,
            question_timeout_ms: QUESTION_TIMEOUT_MS,
            protect: flags.protect.clone(),
            verify: flags.verify.clone(),
            delivery: None,
            plan_approval: PlanApproval::Ask,
        },
        root,
        commit: None,
        notes,
    })
}

fn reviewer(context: &Context, flags: &TermFlags) -> Result<Option<String>, Error> {
    let named = flags.reviewer.as_deref();
    named
        .map(|name| agent_name::absolute(context, name))
        .transpose()
}

/// Returns the flags as those of `kapi run`, whose rules for parties and limits hold here too.
fn as_run(spec: &ModeSpec, flags: &TermFlags, purpose: &str) -> Result<flags::Args, Error> {
    let mut line: Vec<String> = Vec::new();
    let mut add = |name: &str, value: Option<String>| {
        line.extend(value.map(|value| format!("--{name}={value}")));
    };
    add("agent", flags.agent.clone());
    add("model", flags.model.clone());
    let judge = match spec.judge {
        ParticipantNeed::NotAsked => Some("none".to_owned()),
        ParticipantNeed::Asked => flags.judge.clone(),
    };
    add("judge", judge);
    add("sandbox", flags.sandbox.as_ref().and_then(word));
    add("network", flags.network.as_ref().and_then(word));
    add("turns", flags.turns.map(|turns| turns.to_string()));
    add("tokens", flags.tokens.map(|tokens| tokens.to_string()));
    add("usd", flags.usd.map(usd));
    let base = flags.base.as_deref().or_else(|| spec.base.revision());
    add("base", base.map(str::to_owned));
    for command in &flags.verify {
        add("verify", Some(command.clone()));
    }
    for glob in &flags.protect {
        add("protect", Some(glob.clone()));
    }
    line.extend(["--".to_owned(), purpose.to_owned()]);
    let command =
        <flags::Args as clap::Args>::augment_args(clap::Command::new("kapi").no_binary_name(true));
    let matches = command.try_get_matches_from(line);
    let args = matches
        .and_then(|matches| flags::Args::from_arg_matches(&matches))
        .map_err(|error| Error::usage(error.to_string()))?;
    Ok(flags::Args {
        deliver: flags.deliver.clone(),
        ..args
    })
}

/// Returns the word by which a value is given on the command line.
fn word(value: &impl clap::ValueEnum) -> Option<String> {
    Some(value.to_possible_value()?.get_name().to_owned())
}

/// Writes micro-dollars as a flag says them.
fn usd(micros: u64) -> String {
    format!("{}.{:06}", micros / 1_000_000, micros % 1_000_000)
}

#[cfg(test)]
mod tests {
    use kapi_core::mode::Mode;
    use kapi_workflow::rules::flow::BaseRule;
    use kapi_workflow::rules::mode_spec::ModeSpec;

    use super::{TermFlags, as_run, usd};
    use crate::amount;
    use crate::contract::flags;

    #[test]
    fn flags_mean_what_they_mean_for_a_run() {
        let flags = TermFlags {
            agent: Some("script:a b.yaml".to_owned()),
            judge: Some("same".to_owned()),
            sandbox: Some(flags::Sandbox::None),
            network: Some(flags::Network::Open),
            turns: Some(7),
            tokens: Some(1_000),
            usd: Some(1_250_001),
            verify: vec!["sh -c 'a && b'".to_owned(), "--odd".to_owned()],
            protect: vec!["tests/**".to_owned()],
            base: Some("HEAD~1".to_owned()),
            ..TermFlags::default()
        };
        let args = as_run(ModeSpec::of(Mode::Ralph).unwrap(), &flags, "-n is\nno flag").unwrap();
        assert_eq!(args.intent, "-n is\nno flag");
        assert_eq!(args.agent.as_deref(), Some("script:a b.yaml"));
        assert_eq!(args.judge.as_deref(), Some("same"));
        assert_eq!(args.sandbox, Some(flags::Sandbox::None));
        assert_eq!(args.network, Some(flags::Network::Open));
        assert_eq!((args.turns, args.tokens), (Some(7), Some(1_000)));
        assert_eq!(args.usd, Some(1_250_001));
        assert_eq!(args.verify, flags.verify);
        assert_eq!(args.protect, flags.protect);
        assert_eq!(args.base.as_deref(), Some("HEAD~1"));
        let interview = as_run(ModeSpec::of(Mode::DeepInterview).unwrap(), &flags, "x").unwrap();
        assert_eq!(interview.judge.as_deref(), Some("none"));
        let on_dev = ModeSpec {
            base: BaseRule::Dev,
            ..*ModeSpec::of(Mode::Ralph).unwrap()
        };
        let unsaid = as_run(&on_dev, &TermFlags::default(), "x").unwrap();
        assert_eq!(unsaid.base.as_deref(), Some("dev"));
        let said = as_run(&on_dev, &flags, "x").unwrap();
        assert_eq!(said.base.as_deref(), Some("HEAD~1"));
        assert_eq!(amount::parse_usd_micros(&usd(420_000)).unwrap(), 420_000);
    }
}
