//! One effect under way, in a thread of its own that speaks over a bounded channel.
//!
//! Knows nothing of rules: it says what happened, how it ended, or that it is gone.

use std::sync::Arc;
use std::sync::mpsc::SyncSender;
use std::thread::{Scope, ScopedJoinHandle};

use kapi_core::failure::Failure;
use kapi_core::id::EffectId;
use kapi_core::room::Room;
use kapi_sys::cancel::Cancel;

use crate::effect_room::EffectRoom;
use crate::meter::Meter;
use crate::watch::{Activity, EffectWatch, RoomQuery};

/// Messages that may wait for the driving thread before effects have to.
pub const MESSAGES_MAX: usize = 256;

/// What a flight says.
pub enum EffectMessage<O> {
    /// Something that its effect reports while it runs.
    Activity(EffectId, Activity),
    /// What its effect came to.
    Ended(EffectId, Box<O>),
    /// Its thread has panicked.
    Gone(EffectId),
}

/// An effect under way.
pub struct RunningEffect<'scope, E> {
    /// What is performed.
    pub effect: E,
    /// Stops it.
    pub cancel: Cancel,
    /// What was used and not reported yet.
    pub meter: Meter,
    thread: ScopedJoinHandle<'scope, ()>,
}

/// The end of the channel that one flight speaks into; says that its thread is gone unless it said
/// how its effect ended.
pub struct EffectSender<O> {
    sender: SyncSender<EffectMessage<O>>,
    effect: EffectId,
    /// What it may use, shared with the others of its drive.
    room: Arc<EffectRoom>,
    has_ended: bool,
}

impl<'scope, E: Clone + Send + 'scope> RunningEffect<'scope, E> {
    /// Begins to perform an effect.
    pub fn start<'env, O: Send + 'scope>(
        scope: &'scope Scope<'scope, 'env>,
        perform: &'scope (dyn Fn(&E, &EffectWatch<'_>) -> O + Sync + 'scope),
        effect: E,
        meter: Meter,
        mut voice: EffectSender<O>,
    ) -> Self {
        let cancel = Cancel::new();
        let (own, cancelled) = (effect.clone(), cancel.clone());
        let thread = scope.spawn(move || {
            let outcome = performed(&voice, &own, &cancelled, perform);
            voice.has_ended = true;
            voice.say(EffectMessage::Ended(
                voice.effect.clone(),
                Box::new(outcome),
            ));
        });
        Self {
            effect,
            cancel,
            meter,
            thread,
        }
    }

    /// Waits for the thread, and tells whether it has panicked.
    pub fn join(self) -> bool {
        self.thread.join().is_err()
    }

    /// Asks it to stop and waits until it has, whatever it says: nobody listens any more.
    pub fn abort(self) {
        self.cancel.raise();
        // Its panic is told by the failure because of which nobody listens.
        drop(self.thread.join());
    }
}

/// Performs an effect whose use is counted where it happens.
fn performed<E, O: Send>(
    voice: &EffectSender<O>,
    effect: &E,
    cancel: &Cancel,
    perform: &(dyn Fn(&E, &EffectWatch<'_>) -> O + Sync),
) -> O {
    let share = voice.room.share();
    let notice = |activity| {
        if let Activity::Used(usage) = &activity {
            share.count(usage);
        }
        voice.say(EffectMessage::Activity(voice.effect.clone(), activity));
    };
    let room = |query: &RoomQuery<'_>| match query {
        RoomQuery::Claim(claim) => share.claim(claim),
        RoomQuery::Refused { .. } => Room::UNLIMITED,
    };
    perform(
        effect,
        &EffectWatch {
            cancel,
            notice: &notice,
            room: &room,
        },
    )
}

impl<O> EffectSender<O> {
    /// Makes what an effect reports by, over this channel, and what it may use.
    pub fn new(
        sender: &SyncSender<EffectMessage<O>>,
        effect: &EffectId,
        room: &Arc<EffectRoom>,
    ) -> Self {
        Self {
            sender: sender.clone(),
            effect: effect.clone(),
            room: Arc::clone(room),
            has_ended: false,
        }
    }

    fn say(&self, message: EffectMessage<O>) {
        // Nobody listens any more when the drive has failed, and then it says so itself.
        drop(self.sender.send(message));
    }
}

impl<O> Drop for EffectSender<O> {
    fn drop(&mut self) {
        if !self.has_ended {
            self.say(EffectMessage::Gone(self.effect.clone()));
        }
    }
}

/// What an effect comes to whose thread panicked.
pub fn panicked(effect: &EffectId) -> Failure {
    Failure {
        message: format!("perform effect {effect}: its thread panicked"),
        hint: Some("this is a bug in Kapi; please report it.".to_owned()),
    }
}

/// What an effect comes to that says it was cancelled though nobody asked: it would be asked for
/// again for ever.
pub fn cut_off(effect: &EffectId) -> Failure {
    Failure {
        message: format!("perform effect {effect}: it was interrupted unexpectedly"),
        hint: None,
    }
}
