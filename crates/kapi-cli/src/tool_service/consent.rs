//! Asking the person at the terminal whether an agent may do what the contract asks about first.
//!
//! One question at a time, for half a minute; silence is a no. Knows nothing of what is asked.

use std::io::{self, IsTerminal as _};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use kapi_core::actor::Actor;
use kapi_run::gate::person::Person;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::AsFd as _;

use crate::context::Context;
use crate::live_view;
use crate::ui::{Format, Ui, drop_typed_ahead};

/// How long a person is asked.
const ASKED: Duration = Duration::from_secs(30);
/// How often it is looked whether the agent still waits.
const LOOK: Duration = Duration::from_millis(200);
/// Bytes of an answer that are looked at.
const ANSWER_BYTES_MAX: usize = 1024;

/// Returns the person who can be asked while a goal goes on; nobody where there is no terminal.
pub(super) fn person(context: &Context) -> Option<Person> {
    let ui = context.ui;
    let is_human = matches!(context.actor, Actor::Human { .. });
    let is_there = io::stdin().is_terminal() && io::stderr().is_terminal();
    if !is_human || !is_there || ui.format != Format::Human {
        return None;
    }
    // The questions of several agents at once come one after another.
    let turns = Mutex::new(());
    let ask = move |question: &str, is_over: &dyn Fn() -> bool| {
        let _turn = turns.lock().unwrap_or_else(PoisonError::into_inner);
        asked(ui, question, is_over)
    };
    Some(Person {
        actor: context.actor.clone(),
        ask: Arc::new(ask),
    })
}

fn asked(ui: Ui, question: &str, is_over: &dyn Fn() -> bool) -> bool {
    let answer = live_view::ask(question, ASKED, is_over);
    if let Some(is_yes) = answer {
        ui.say(&format!(
            "{question} {}",
            if is_yes { "Allowed." } else { "Denied." }
        ));
        return is_yes;
    }
    ui.clear_live();
    // What was typed before the question is no answer to it, and whoever sees it may answer at once.
    drop_typed_ahead();
    ui.say(&format!("{question} [y/N, within {} s]", ASKED.as_secs()));
    let answer = typed(is_over);
    let is_yes = answer
        .as_deref()
        .is_some_and(|text| matches!(text.trim().to_lowercase().as_str(), "y" | "yes"));
    ui.say(if is_yes { "Allowed." } else { "Denied." });
    is_yes
}

/// Reads one line; none when nobody types it in time, or nobody waits for it any more.
fn typed(is_over: &dyn Fn() -> bool) -> Option<String> {
    let began = Instant::now();
    let mut line = Vec::new();
    let mut piece = [0_u8; 256];
    while began.elapsed() < ASKED && !is_over() && line.len() < ANSWER_BYTES_MAX {
        if !is_readable(LOOK) {
            continue;
        }
        let n_read = rustix::io::read(rustix::stdio::stdin(), &mut piece).ok()?;
        line.extend_from_slice(piece.get(..n_read)?);
        if n_read == 0 || line.ends_with(b"\n") {
            return String::from_utf8(line).ok();
        }
    }
    None
}

fn is_readable(within: Duration) -> bool {
    let Ok(limit) = Timespec::try_from(within) else {
        return false;
    };
    let stdin = rustix::stdio::stdin();
    let stdin = stdin.as_fd();
    let mut waiting = [PollFd::new(&stdin, PollFlags::IN)];
    poll(&mut waiting, Some(&limit)).is_ok_and(|n_ready| n_ready > 0)
}
