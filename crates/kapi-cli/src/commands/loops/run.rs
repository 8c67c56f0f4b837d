//! `kapi loop run`: set a loop off by hand, and work on the run here unless somebody else does.
//!
//! What comes of it is shown as for any task; a dry run asks every rule and records nothing.

use std::fs;

use kapi_core::task_id::{KernelTaskId, LoopName};
use kapi_core::value::KernelValue;
use kapi_machine::watch::Activity;
use kapi_sys::clock::Clock as _;
use kapi_task::record::admission::{KeyAsk, LoopAsk};
use kapi_task::rules::command::KernelCommand;
use kapi_task::rules::decide::{KernelReply, decide};
use kapi_task::rules::definition::Definition;
use kapi_task::rules::evolve::evolve;
use kapi_task::rules::loop_run::RunTrigger;
use kapi_task::rules::task::KernelTask;
use serde_json::json;

use crate::commands::loops::{loop_state, parse};
use crate::commands::task::submitted::{TaskExecutor, follow_up};
use crate::config::deliver::DeliverArgs;
use crate::context::Context;
use crate::delivery;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::kernel::{self, ProjectKernel, failed};
use crate::ui::Format;

/// The longest payload in bytes.
const PAYLOAD_BYTES_MAX: u64 = 64 * 1024;

/// Run a loop now
///
/// Exit codes: 0 completed or not due, 2 usage error, 3 denied, 5 failed or cancelled, 6 no such
/// loop, 130 interrupted (the run stays in the queue).
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Loop name
    #[arg(value_name = "LOOP", value_parser = parse)]
    name: LoopName,
    /// Override an input of the definition (repeatable)
    #[arg(long = "input", value_name = "NAME=VALUE", value_parser = input)]
    inputs: Vec<(String, KernelValue)>,
    /// Trigger payload: JSON, or '@FILE' to read it from a file
    #[arg(long, value_name = "JSON")]
    payload: Option<String>,
    /// Description of the trigger
    #[arg(long, value_name = "TEXT")]
    source: Option<String>,
    /// Run despite an identical recent request or a cooldown
    #[arg(long)]
    again: bool,
    /// Queue the run for another worker and return at once
    #[arg(short, long, conflicts_with_all = ["push", "pr"])]
    detach: bool,
    #[command(flatten)]
    deliver: DeliverArgs,
    /// Check rules and condition, without running the loop
    #[arg(long, conflicts_with_all = ["detach"])]
    dry_run: bool,
}

/// Runs a loop.
pub(super) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    let context = &context.with_deliver(&args.deliver);
    kernel::with(context, "kapi loop run", |kernel| {
        let root = kernel.project.layout.root();
        delivery::check_flags(context, kernel.config, root, &args.deliver)?;
        let found = kernel.loops();
        let definition = loop_state::find(&found, &args.name)?;
        let profile = kernel.profile(Some(&definition.agent))?;
        kernel.check_limits(definition.backend.as_ref(), profile, &definition.budget)?;
        if !args.dry_run {
            kernel.prepare()?;
        }
        let mut queue = kernel.queue()?;
        let (origin, _) = kernel.asker(&queue);
        let ask = LoopAsk {
            definition,
            profile,
            trigger: RunTrigger::Manual {
                source: args.source.clone(),
            },
            inputs: args.inputs.iter().cloned().collect(),
            payload: payload(args.payload.as_deref())?,
            depth: 0,
            key: if args.again {
                KeyAsk::None
            } else {
                KeyAsk::Derived
            },
            origin,
        };
        if args.dry_run {
            return dry_run(kernel, queue.kernel(), definition, ask);
        }
        let actor = &context.actor;
        let answer =
            kernel.at_admission(|admission| admission.trigger_loop(&mut queue, actor, ask));
        let answer = answer.map_err(|error| failed(&error))?;
        let location = if args.detach {
            TaskExecutor::Elsewhere
        } else {
            TaskExecutor::Here
        };
        follow_up(kernel, queue, &answer, location)
    })
}

/// Tells what would become of it, and changes nothing.
fn dry_run(
    kernel: &ProjectKernel<'_>,
    fold: &kapi_task::rules::state::KernelState,
    definition: &Definition,
    ask: LoopAsk<'_>,
) -> Result<Exit, Error> {
    let context = kernel.context;
    let profile = ask.profile;
    let inputs = definition.inputs_with(&ask.inputs);
    let inputs = inputs.map_err(|error| failed(&error.into()))?;
    let root = kernel.project.layout.root().display().to_string();
    let (request, ruling) = kernel
        .at_admission(|admission| {
            let request = admission.loop_request(ask)?;
            let ruling = admission.ask_policy(&root, &request, profile);
            Ok((request, ruling))
        })
        .map_err(|error| failed(&error))?;
    let submit = KernelCommand::Submit {
        request: Box::new(request),
        admission: kernel.terms.admission(),
    };
    let decided = decide(fold, &context.actor, &submit, context.clock.now_ms());
    let would = match (&decided, ruling.allowed) {
        (_, false) => {
            let texts = ruling
                .violations
                .iter()
                .map(|violation| violation.text.clone());
            format!(
                "be denied by the policy: {}",
                texts.collect::<Vec<_>>().join("; ")
            )
        }
        (Err(denied), true) => format!("be denied: {denied}"),
        (Ok(decided), true) => match &decided.answer {
            KernelReply::Duplicate(first) => format!("return the existing task {first}"),
            KernelReply::Skipped(reason) => format!("not run now: {reason}"),
            KernelReply::Submitted(id) => {
                let mut tried = fold.clone();
                for event in &decided.events {
                    evolve(&mut tried, event, context.clock.now_ms());
                }
                by_condition(kernel, tried.task(*id))?
            }
            KernelReply::Claimed(..) | KernelReply::Nothing | KernelReply::Done => "run".to_owned(),
        },
    };
    match context.ui.format {
        Format::Json => context.ui.json(&json!({
            "type": "dry_run", "loop": definition.name, "would": would,
            "agent": profile.name, "inputs": inputs, "allowed": ruling.allowed,
        })),
        Format::Human => {
            let name = &definition.name;
            context.ui.line(&format!("{name} would {would}."));
            context.ui.line(&format!("  agent    {}", profile.name));
            for (input, value) in &inputs {
                context
                    .ui
                    .line(&format!("  input    {input} = {}", value.to_json()));
            }
        }
    }
    let is_denied = !ruling.allowed || decided.is_err();
    Ok(if is_denied {
        Exit::Denied
    } else {
        Exit::Success
    })
}

/// Tells what would become of a run by its condition, which is looked at now.
fn by_condition(kernel: &ProjectKernel<'_>, task: Option<&KernelTask>) -> Result<String, Error> {
    let notice = |_: KernelTaskId, _: Activity| {};
    let performing = kernel.performer(&notice)?;
    let tried = task.map(|task| performing.try_condition(task));
    Ok(match tried {
        None | Some(Ok(None)) => "run".to_owned(),
        Some(Ok(Some(verdict))) if verdict.holds => {
            format!("run, because its condition holds: {}", verdict.text())
        }
        Some(Ok(Some(verdict))) => format!(
            "not run, because its condition does not hold: {}",
            verdict.text()
        ),
        Some(Err(why)) => format!("not run, because its condition cannot be looked at: {why}"),
    })
}

/// Reads `name=value`; a value that is JSON is that, everything else is text.
fn input(text: &str) -> Result<(String, KernelValue), String> {
    let Some((name, value)) = text.split_once('=') else {
        return Err("write it as name=value".to_owned());
    };
    let read = serde_json::from_str(value);
    let value = read.unwrap_or_else(|_| KernelValue::Text(value.to_owned()));
    Ok((name.trim().to_owned(), value))
}

fn payload(said: Option<&str>) -> Result<KernelValue, Error> {
    let Some(said) = said else {
        return Ok(KernelValue::Null);
    };
    let read;
    let text = match said.strip_prefix('@') {
        None => said,
        Some(path) => {
            let failed = |error: std::io::Error| {
                Error::new(Exit::Usage, format!("failed to read {path}: {error}"))
            };
            let n_bytes = fs::metadata(path).map_err(failed)?.len();
            check_length(n_bytes)?;
            read = fs::read_to_string(path).map_err(failed)?;
            read.as_str()
        }
    };
    check_length(u64::try_from(text.len()).unwrap_or(u64::MAX))?;
    serde_json::from_str(text)
        .map_err(|error| Error::usage(format!("failed to read the payload as JSON: {error}")))
}

fn check_length(n_bytes: u64) -> Result<(), Error> {
    if n_bytes > PAYLOAD_BYTES_MAX {
        return Err(Error::usage("the payload is longer than 64 KiB"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use kapi_core::value::KernelValue;

    use super::{input, payload};

    #[test]
    fn an_input_is_json_where_it_can_be_and_text_elsewhere() {
        let text = |text: &str| KernelValue::Text(text.to_owned());
        for (said, name, value) in [
            ("a=1", "a", KernelValue::Integer(1)),
            ("a=main", "a", text("main")),
            ("a=b=c", "a", text("b=c")),
            ("a=\"1\"", "a", text("1")),
            ("a=true", "a", KernelValue::Bool(true)),
            ("a=", "a", text("")),
        ] {
            assert_eq!(input(said).unwrap(), (name.to_owned(), value), "{said}");
        }
        assert!(input("a").is_err());
    }

    #[test]
    fn a_payload_is_json_of_bounded_length() {
        assert_eq!(payload(None).unwrap(), KernelValue::Null);
        assert_eq!(
            payload(Some("[1]")).unwrap(),
            KernelValue::List(vec![KernelValue::Integer(1)])
        );
        assert!(payload(Some("{")).is_err());
        assert!(payload(Some("@/nonexistent")).is_err());
        let long = format!("\"{}\"", "x".repeat(64 * 1024));
        assert_eq!(
            payload(Some(&long)).unwrap_err().message,
            "the payload is longer than 64 KiB"
        );
    }
}
