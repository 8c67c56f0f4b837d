//! `kapi loop policy`: the rules in force with their places, and what they would come to.
//!
//! Only reads and asks; a file that cannot be read denies everything, and is shown with why.

use kapi_core::isolation::NetworkMode;
use kapi_sys::clock::Clock as _;
use kapi_task::record::policy_file;
use kapi_task::rules::policy;
use kapi_task::rules::policy::{PolicyDecision, PolicyRequest, RequestKind};
use kapi_task::rules::task_terms::TaskBudget;
use kapi_wire::kernel::policy::{PolicyView, effect_word};
use serde::Serialize;

use crate::amount;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, ProjectKernel};
use crate::ui::Format;

/// Options of `kapi loop policy`.
#[derive(Debug, clap::Args)]
#[command(disable_help_subcommand = true)]
pub(crate) struct Args {
    /// The command [default: show the rules]
    #[command(subcommand)]
    verb: Option<PolicyVerb>,
}

#[derive(Debug, clap::Subcommand)]
enum PolicyVerb {
    /// Evaluate the rules for a request, without submitting it
    Test(Box<Test>),
}

/// A request to try.
#[derive(Debug, clap::Args)]
struct Test {
    /// Agent profile
    #[arg(long, value_name = "PROFILE")]
    profile: Option<String>,
    /// Test a run of this loop instead of a task
    #[arg(long = "loop", value_name = "NAME")]
    loop_name: Option<String>,
    /// Trigger of the loop run
    #[arg(long, value_name = "TEXT", requires = "loop_name")]
    trigger_source: Option<String>,
    /// Agent program [default: the profile's]
    #[arg(long, value_name = "AGENT")]
    agent: Option<String>,
    /// The agent's prompt
    #[arg(long, value_name = "TEXT", default_value = "")]
    prompt: String,
    /// Command the request declares (repeatable)
    #[arg(long, value_name = "COMMAND")]
    command: Vec<String>,
    /// Project path the request declares (repeatable)
    #[arg(long, value_name = "PATH")]
    path: Vec<String>,
    /// Host the request declares (repeatable)
    #[arg(long, value_name = "HOST")]
    host: Vec<String>,
    /// Network access the request asks for
    #[arg(long, value_name = "MODE", value_parser = ["none", "filtered", "open"])]
    network: Option<String>,
    /// Token limit
    #[arg(long, value_name = "N", value_parser = amount::parse_count)]
    tokens: Option<u64>,
    /// Cost limit in US dollars
    #[arg(long, value_name = "USD", value_parser = amount::parse_usd_micros)]
    usd: Option<u64>,
    /// Time limit
    #[arg(long, value_name = "TIME", value_parser = amount::parse_duration_ms)]
    time: Option<u64>,
    /// Assume that a person is there to answer questions
    #[arg(long)]
    attended: bool,
}

#[derive(Debug, Serialize)]
struct PolicyTestView<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    #[serde(flatten)]
    decision: &'a PolicyDecision,
}

/// Shows the rules, or tries them.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    kernel::with(context, "kapi loop policy", |kernel| match &args.verb {
        None => Ok(show(kernel)),
        Some(PolicyVerb::Test(args)) => test(kernel, args),
    })
}

fn show(kernel: &ProjectKernel<'_>) -> Exit {
    let view = PolicyView::from(&kernel.policy);
    let ui = kernel.context.ui;
    match ui.format {
        Format::Json => ui.json(&view),
        Format::Human => human(kernel.context, &view),
    }
    if view.ok { Exit::Success } else { Exit::Usage }
}

fn human(context: &Context, view: &PolicyView) {
    let ui = context.ui;
    if view.files.is_empty() {
        ui.line("No rules: every task and loop is allowed.");
        ui.line("  next     write .ilchul/policy.yaml; see docs/kernel.md for an example");
    }
    for file in &view.files {
        ui.line(&file.file);
        for fault in &file.faults {
            let key = match fault.key.as_str() {
                "" => String::new(),
                key => format!("{key}: "),
            };
            ui.line(&format!("  line {}: {key}{}", fault.line, fault.what));
            ui.line(&format!("    hint: {}", fault.remedy));
        }
        if !file.faults.is_empty() {
            ui.line("  denies everything until this is fixed");
        }
        for rule in &file.rules {
            let mut about = rule.when.clone();
            about.extend(rule.part.clone());
            let about = if about.is_empty() {
                "everything".to_owned()
            } else {
                about.join(", ")
            };
            let why = rule.reason.as_ref().map(|why| format!("  ({why})"));
            let effect = effect_word(rule.effect);
            let line = format!("  line {:<4} {effect:<6} {}: {about}", rule.line, rule.rule);
            ui.line(&format!("{line}{}", why.unwrap_or_default()));
        }
        let classic = [
            ("backgroundTask", file.background_task),
            ("loopTrigger", file.loop_trigger),
        ];
        for (name, _) in classic.iter().filter(|(_, is_there)| *is_there) {
            ui.line(&format!("  {name}: the rule from oh-my-creampi applies"));
        }
        ui.line(&format!("  otherwise {}", effect_word(file.default)));
    }
}

fn test(kernel: &ProjectKernel<'_>, args: &Test) -> Result<Exit, Error> {
    let decision = policy::evaluate(&kernel.policy, &request(kernel, args)?);
    let ui = kernel.context.ui;
    match ui.format {
        Format::Json => ui.json(&PolicyTestView {
            kind: "decision",
            decision: &decision,
        }),
        Format::Human => announce(kernel.context, &decision),
    }
    Ok(if decision.allowed {
        Exit::Success
    } else {
        Exit::Denied
    })
}

fn request(kernel: &ProjectKernel<'_>, args: &Test) -> Result<PolicyRequest, Error> {
    let profile = kernel.profile(args.profile.as_deref())?;
    let network = args.network.as_deref().map(|word| match word {
        "none" => NetworkMode::None,
        "open" => NetworkMode::Open,
        _ => NetworkMode::Filtered,
    });
    let tools = profile.tools.as_ref();
    Ok(PolicyRequest {
        kind: if args.loop_name.is_some() {
            RequestKind::Loop
        } else {
            RequestKind::Task
        },
        agent: Some(profile.name.clone()),
        loop_name: args.loop_name.clone(),
        project: kernel.project.layout.root().display().to_string(),
        backend: args.agent.clone().or_else(|| profile.backend.clone()),
        tools: tools.map(|tools| tools.iter().map(|tool| tool.name().to_owned()).collect()),
        prompt: args.prompt.clone(),
        trigger_source: args.trigger_source.clone(),
        budget: TaskBudget {
            tokens: args.tokens,
            usd_micros: args.usd,
            time_ms: args
                .time
                .or_else(|| Some(kernel.terms.default_timeout_ms).filter(|ms| *ms > 0)),
        },
        is_unattended: !args.attended,
        network,
        hosts: args.host.clone(),
        commands: args.command.clone(),
        paths: args.path.clone(),
        local_times: policy_file::local_times(&kernel.policy, kernel.context.clock.now_ms()),
    })
}

fn announce(context: &Context, decision: &PolicyDecision) {
    let ui = context.ui;
    ui.line(if decision.allowed {
        "allowed"
    } else {
        "denied"
    });
    for violation in &decision.violations {
        ui.line(&format!("  because  {violation}"));
    }
    let limits = &decision.constraints;
    let lists = [
        ("refused", &limits.forbidden_commands),
        ("asks", &limits.ask_before),
        ("fixed", &limits.read_only),
        ("no host", &limits.forbidden_hosts),
    ];
    for (word, list) in lists {
        for limit in list {
            ui.line(&format!("  {word:<9}{}  ({})", limit.pattern, limit.set_by));
        }
    }
    if let Some(most) = &limits.network_max {
        ui.line(&format!(
            "  network  at most {}  ({})",
            most.mode, most.set_by
        ));
    }
}
