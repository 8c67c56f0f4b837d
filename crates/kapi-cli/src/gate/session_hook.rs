//! The hooks of a person's own session: the gate of its checkout asked at a tool, at the end of a turn and
//! at what the person types.
//!
//! Where there is no gate, nothing is said and git is not asked. Where there is one, whatever goes wrong
//! at the end of a turn holds, and says how the person lets go.

use std::io::{self, Read as _, Write as _};
use std::path::Path;

use kapi_agent::hook::HookAgent;
use kapi_agent::hook::gate::{QUESTION_BYTES_MAX, question};
use kapi_check::rules::stop_gate::{GateAnswer, StopGate};
use serde_json::{Value, json};

use super::order::{GateOrder, carry_out, shown};
use super::proof;
use super::record::GatedCheckout;
use crate::context::Context;
use crate::error::Error;
use crate::ui::charset::Charset;
use crate::ui::screen::ScreenKind;
use crate::ui::{Format, Ui};

/// How a person lets go when the gate itself is broken.
const WAY_OUT: &str = "The user can let go with /kapi:off or `kapi gate off`.";

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
        if let Some(checkout) = GatedCheckout::with_gate(context, &context.cwd) {
            // A count that cannot be begun anew lets go sooner, never later.
            drop(checkout.change(|gate| Ok((gate.map(StopGate::spoken_to), ()))));
        }
        return json!({});
    };
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
    let gate = checkout.and_then(|checkout| checkout.load().ok().flatten());
    let Some(gate) = gate.filter(|gate| gate.at_stop() == GateAnswer::Prove) else {
        return json!({});
    };
    json!({
        "hookSpecificOutput": {
            "hookEventName": "SessionStart",
            "additionalContext": contract_words(&shown(&gate)),
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
    if StopGate::is_own_command(&asked.tool, &asked.fields) {
        let text = "only the user changes the stop gate: they type /kapi:pause, /kapi:resume or \
                    /kapi:off, or run `kapi gate` in their own terminal.";
        return refused_tool(agent, "deny", text);
    }
    let gate = match checkout.require() {
        Ok(gate) => gate,
        Err(error) => return refused_tool(agent, "deny", &words(&error)),
    };
    match gate.asked_first(&asked.tool, &asked.fields) {
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
    match judged(context, &checkout) {
        Ok(GateAnswer::Open | GateAnswer::Prove) => json!({}),
        Ok(GateAnswer::LetGo(text)) => json!({"systemMessage": text}),
        Ok(GateAnswer::Hold(reason)) => held(agent, &reason),
        Err(error) => held(
            agent,
            &format!("Kapi's stop gate: {} {WAY_OUT}", words(&error)),
        ),
    }
}

fn judged(context: &Context, checkout: &GatedCheckout<'_>) -> Result<GateAnswer, Error> {
    let gate = checkout.require()?;
    if gate.at_stop() != GateAnswer::Prove {
        return Ok(gate.at_stop());
    }
    let verdict = proof::verdict(context, checkout, &gate);
    checkout.change(|now| match now {
        Some(mut now) => {
            let answer = now.judge(verdict);
            Ok((Some(now), answer))
        }
        // The person took it away meanwhile.
        None => Ok((None, GateAnswer::Open)),
    })
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
