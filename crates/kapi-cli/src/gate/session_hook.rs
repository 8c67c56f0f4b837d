//! The hooks of a person's own session: the gate of its checkout asked at a tool, at the end of a turn and
//! at what the person types.
//!
//! Where there is no gate, nothing is said and git is not asked. Where there is one, whatever goes wrong
//! at the end of a turn holds, and says how the person lets go.

use std::io::{self, Read as _, Write as _};
use std::path::Path;

use kapi_agent::hook::HookAgent;
use kapi_agent::hook::gate::{QUESTION_BYTES_MAX, question};
use kapi_core::consent_rule::matches;
use kapi_goal::perform::tools::open_entries;
use kapi_goal::rules::state::GoalStatus;
use serde_json::{Value, json};

use super::goal::shown;
use super::order::{GateOrder, carry_out};
use super::record::GatedCheckout;
use super::turn_end::{self, TurnEnd};
use crate::context::Context;
use crate::error::Error;
use crate::ui::charset::Charset;
use crate::ui::screen::ScreenKind;
use crate::ui::{Format, Ui};

/// What only the person does with the goal of the gate.
const PERSONS_COMMANDS: [&str; 5] = [
    "kapi gate",
    "kapi goal",
    "kapi resume",
    "kapi cancel",
    "kapi budget",
];
/// How a person lets go when the gate itself is broken.
const WAY_OUT: &str = "The user can release it with /kapi:off or `kapi gate off`.";

/// Answers one payload from standard input.
pub(crate) fn enter(agent: &str) -> i32 {
    let mut payload = Vec::new();
    let limit = u64::try_from(QUESTION_BYTES_MAX).unwrap_or(u64::MAX);
    let read = io::stdin().lock().take(limit).read_to_end(&mut payload);
    let answer = match (read, HookAgent::from_name(agent)) {
        (Ok(_), Some(agent)) => answer_to(agent, &payload),
        (Err(_), _) | (_, None) => json!({}),
    };
    // Whoever does not listen to the answer needs none.
    drop(writeln!(io::stdout(), "{answer}"));
    0
}

fn answer_to(agent: HookAgent, payload: &[u8]) -> Value {
    let Ok(event) = serde_json::from_slice::<Value>(payload) else {
        return json!({});
    };
    let environment = kapi_sys::process::environment();
    let ui = Ui {
        format: Format::Json,
        charset: Charset::of(&environment),
        screen: ScreenKind::Lines,
    };
    let Ok(mut context) = Context::new(ui) else {
        return json!({});
    };
    if let Some(cwd) = event["cwd"]
        .as_str()
        .filter(|cwd| Path::new(cwd).is_absolute())
    {
        context.cwd = cwd.into();
    }
    match event["hook_event_name"].as_str().unwrap_or_default() {
        "UserPromptSubmit" | "BeforeAgent" => typed(&context, agent, &event),
        "PreToolUse" | "BeforeTool" => before_tool(&context, agent, payload),
        "Stop" | "AfterAgent" => at_stop(&context, agent),
        "SessionStart" => at_start(&context),
        _ => json!({}),
    }
}

/// What the person types is theirs: an order is carried out, and no model is asked about it.
fn typed(context: &Context, agent: HookAgent, event: &Value) -> Value {
    let prompt = event["prompt"].as_str().unwrap_or_default();
    let Some(order) = GateOrder::typed(prompt) else {
        let checkout = GatedCheckout::with_gate(context, &context.cwd);
        let gated = checkout.and_then(|checkout| checkout.goal().ok().flatten());
        if let Some(gated) = gated {
            // A count that cannot be begun anew lets go sooner, never later.
            drop(turn_end::spoken(context, &gated));
        }
        return json!({});
    };
    let order = order.map(|order| order.in_client(agent));
    let is_work = matches!(order, Ok(GateOrder::Set(_)));
    let done = order.and_then(|order| carry_out(context, &order));
    match done {
        Ok(text) if is_work => json!({
            "hookSpecificOutput": {
                "hookEventName": event["hook_event_name"],
                "additionalContext": contract_words(&text),
            },
        }),
        Ok(text) => refused_prompt(agent, &format!("Kapi: {text}")),
        Err(error) => refused_prompt(agent, &format!("Kapi: {}", words(&error))),
    }
}

fn contract_words(text: &str) -> String {
    format!(
        "The user set a contract for this session:\n{text}\nKapi runs these checks itself on the work as \
         it stands whenever you end your turn, and holds you until they pass. Only the user pauses \
         or ends this."
    )
}

/// A prompt that was carried out goes to no model; its answer is what the person reads.
fn refused_prompt(agent: HookAgent, text: &str) -> Value {
    match agent {
        HookAgent::Claude | HookAgent::Codex => json!({"decision": "block", "reason": text}),
        HookAgent::Gemini => json!({"decision": "deny", "reason": text, "systemMessage": text}),
    }
}

fn at_start(context: &Context) -> Value {
    let checkout = GatedCheckout::with_gate(context, &context.cwd);
    let gated = checkout.and_then(|checkout| checkout.goal().ok().flatten());
    let goal = gated.and_then(|gated| gated.goal().ok());
    let Some(goal) = goal.filter(|goal| goal.status == GoalStatus::Active) else {
        return json!({});
    };
    json!({
        "hookSpecificOutput": {
            "hookEventName": "SessionStart",
            "additionalContext": contract_words(&shown(&goal)),
        },
    })
}

fn before_tool(context: &Context, agent: HookAgent, payload: &[u8]) -> Value {
    let Some(checkout) = GatedCheckout::with_gate(context, &context.cwd) else {
        return json!({});
    };
    let Some(asked) = question(payload) else {
        return refused_tool(
            agent,
            "deny",
            "Kapi cannot read what the tool was called with.",
        );
    };
    let persons = PERSONS_COMMANDS.map(str::to_owned);
    if matches(&persons, &asked.tool, &asked.fields).is_some() {
        let text = "only the user changes the stop gate: they type /kapi:pause, /kapi:resume or \
                    /kapi:off, or run `kapi` in their own terminal.";
        return refused_tool(agent, "deny", text);
    }
    let goal = match checkout.require().and_then(|gated| gated.goal()) {
        Ok(goal) => goal,
        Err(error) => return refused_tool(agent, "deny", &words(&error)),
    };
    let open = if goal.status.is_terminal() {
        Vec::new()
    } else {
        open_entries(&goal)
    };
    match matches(&open, &asked.tool, &asked.fields) {
        None => json!({}),
        Some(entry) => {
            let text = format!("Kapi: {entry:?} is on the contract's ask-before list.");
            refused_tool(agent, "ask", &text)
        }
    }
}

/// Gemini has no way to ask its person from a hook: there it is a no.
fn refused_tool(agent: HookAgent, decision: &str, reason: &str) -> Value {
    match agent {
        HookAgent::Claude | HookAgent::Codex => json!({
            "hookSpecificOutput": {
                "hookEventName": "PreToolUse",
                "permissionDecision": decision,
                "permissionDecisionReason": reason,
            },
        }),
        HookAgent::Gemini => json!({"decision": "deny", "reason": reason}),
    }
}

fn at_stop(context: &Context, agent: HookAgent) -> Value {
    let Some(checkout) = GatedCheckout::with_gate(context, &context.cwd) else {
        return json!({});
    };
    let ended = checkout
        .require()
        .and_then(|gated| turn_end::at_stop(&gated));
    match ended {
        Ok(TurnEnd::Open) => json!({}),
        Ok(TurnEnd::LetGo(text)) => json!({"systemMessage": text}),
        Ok(TurnEnd::Hold(reason)) => held(agent, &reason),
        Err(error) => held(
            agent,
            &format!("Kapi's stop gate: {} {WAY_OUT}", words(&error)),
        ),
    }
}

fn held(agent: HookAgent, reason: &str) -> Value {
    match agent {
        HookAgent::Claude | HookAgent::Codex => json!({"decision": "block", "reason": reason}),
        HookAgent::Gemini => json!({"decision": "deny", "reason": reason}),
    }
}

fn words(error: &Error) -> String {
    let hint = error.hint.as_deref().unwrap_or_default();
    format!("{error}. {hint}").trim_end().to_owned()
}
