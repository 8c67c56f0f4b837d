//! The port of a supervisor where calls come in that trigger loops.
//!
//! Where another supervisor has it, this one takes it as soon as it is free. What a call triggers is
//! the kernel's affair; here it becomes a status.

use std::net::TcpListener;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::Scope;

use kapi_core::task_id::LoopName;
use kapi_gateway::serve::{ServeLimits, StopSignal, serve};
use kapi_task::record::error::KernelError;
use kapi_task::record::leader::call::{LoopCall, LoopCallOutcome};
use serde_json::{Value, json};

use crate::commands::up::board::Board;
use crate::config::webhook::Webhook;
use crate::error::Error;
use crate::kernel::{ProjectKernel, failed};
use crate::webhook::proof::CallProof;
use crate::webhook::waiting::ConnectionQueue;
use crate::webhook::{CONNECTIONS_MAX, WebhookCall, WebhookReply, WebhookServer};

/// Calls that may wait before others are refused.
const CALLS_MAX: usize = 32;
/// How often it is tried to take the port, in milliseconds.
const TRY_MS: u64 = 5_000;

/// What a call came to for each loop that waits for it.
type Taken = Result<Vec<(LoopName, LoopCallOutcome)>, KernelError>;

/// The port and what comes in there.
pub(super) struct InboundCalls<'scope, 'env> {
    scope: &'scope Scope<'scope, 'env>,
    webhook: Webhook,
    proof: CallProof,
    ring: &'env (dyn Fn() + Sync),
    line: SyncSender<WebhookCall>,
    asked: Receiver<WebhookCall>,
    stop: StopSignal,
    port: Port,
}

enum Port {
    /// Somebody else has it, or nobody tried.
    Closed {
        /// When to try again, in milliseconds of the monotonic clock.
        again_at_ms: u64,
        /// Whether that was told.
        is_reported: bool,
    },
    Open,
    Ended,
}

impl<'scope, 'env> InboundCalls<'scope, 'env> {
    /// Makes it, where the person wants calls to be taken.
    pub(super) fn wanted(
        scope: &'scope Scope<'scope, 'env>,
        kernel: &ProjectKernel<'_>,
        ring: &'env (dyn Fn() + Sync),
    ) -> Result<Option<Self>, Error> {
        let Some(webhook) = kernel.config.kernel.person.webhook.clone() else {
            return Ok(None);
        };
        let proof = CallProof::read(kernel.context, &webhook.secret)?;
        let (line, asked) = sync_channel(CALLS_MAX);
        Ok(Some(Self {
            scope,
            webhook,
            proof,
            ring,
            line,
            asked,
            stop: StopSignal::new().map_err(|error| Error::failed(&error))?,
            port: Port::Closed {
                again_at_ms: 0,
                is_reported: false,
            },
        }))
    }

    /// Returns when to try again to take the port.
    pub(super) const fn again_at_ms(&self) -> Option<u64> {
        match self.port {
            Port::Closed { again_at_ms, .. } => Some(again_at_ms),
            Port::Open | Port::Ended => None,
        }
    }

    /// Takes the port, if it is free.
    pub(super) fn open(&mut self, board: &mut Board, now_ms: u64) {
        let Port::Closed {
            again_at_ms,
            is_reported,
        } = self.port
        else {
            return;
        };
        if now_ms < again_at_ms {
            return;
        }
        let address = self.webhook.listen;
        let listener = match TcpListener::bind(address) {
            Ok(listener) => listener,
            Err(error) => {
                if !is_reported {
                    board.say(&format!(
                        "note: webhook calls are not accepted: listen on {address}: {error}"
                    ));
                }
                self.port = Port::Closed {
                    again_at_ms: now_ms + TRY_MS,
                    is_reported: true,
                };
                return;
            }
        };
        let address = listener.local_addr().unwrap_or(address);
        board.listening(&format!("http://{address}/loops/<name>"));
        let server = WebhookServer {
            proof: self.proof.clone(),
            line: self.line.clone(),
            ring: self.ring,
            waiting: ConnectionQueue::default(),
        };
        let stop = self.stop.clone();
        self.scope.spawn(move || {
            let limits = ServeLimits {
                connections_max: CONNECTIONS_MAX,
            };
            // A listener that broke is like one that nobody calls.
            drop(serve(&listener, &stop, limits, &|stream| {
                server.serve(stream);
            }));
        });
        self.port = Port::Open;
    }

    /// Answers the calls that wait.
    pub(super) fn answer(
        &self,
        take: &mut dyn FnMut(&LoopCall) -> Taken,
        board: &mut Board,
    ) -> Result<(), Error> {
        for asked in self.asked.try_iter() {
            let outcomes = take(&asked.call).map_err(|error| failed(&error))?;
            board.called(&asked.call.name, outcomes.len());
            // The caller may have gone.
            drop(asked.reply.try_send(reply(&outcomes)));
        }
        Ok(())
    }

    /// Takes no more calls.
    pub(super) fn end(&mut self) {
        self.stop.raise();
        self.port = Port::Ended;
    }
}

/// Returns what a caller is told: the best of what became of its call.
fn reply(outcomes: &[(LoopName, LoopCallOutcome)]) -> WebhookReply {
    let documents: Vec<Value> = outcomes
        .iter()
        .map(|(name, called)| match called {
            LoopCallOutcome::Run(task) => json!({"loop": name, "task": task}),
            LoopCallOutcome::Duplicate(task) => {
                json!({"loop": name, "task": task, "duplicate": true})
            }
            LoopCallOutcome::Coalesced(why) => json!({"loop": name, "coalesced": why}),
            LoopCallOutcome::Full(why) | LoopCallOutcome::Refused(why) => {
                json!({"loop": name, "error": why})
            }
        })
        .collect();
    let status = |called: &LoopCallOutcome| match called {
        LoopCallOutcome::Run(_) | LoopCallOutcome::Coalesced(_) => 202,
        LoopCallOutcome::Duplicate(_) => 409,
        LoopCallOutcome::Full(_) => 429,
        LoopCallOutcome::Refused(_) => 403,
    };
    let best = outcomes.iter().map(|(_, called)| status(called)).min();
    match best {
        Some(status) => WebhookReply::new(status, json!({ "loops": documents })),
        None => WebhookReply::new(404, json!({"error": "no loop is triggered by this call"})),
    }
}

#[cfg(test)]
mod tests {
    use kapi_core::task_id::{KernelTaskId, LoopName};
    use kapi_task::record::leader::call::LoopCallOutcome;

    use super::reply;

    #[test]
    fn a_caller_is_told_the_best_of_what_became_of_its_call() {
        let name = |text: &str| LoopName::parse(text).unwrap();
        let run = || LoopCallOutcome::Run(KernelTaskId::new(1));
        let duplicate = || LoopCallOutcome::Duplicate(KernelTaskId::new(1));
        let full = || LoopCallOutcome::Full("full".to_owned());
        for (called, status) in [
            (vec![], 404),
            (vec![run()], 202),
            (vec![full(), run()], 202),
            (vec![duplicate()], 409),
            (vec![full()], 429),
            (vec![LoopCallOutcome::Refused("no".to_owned())], 403),
        ] {
            let outcomes: Vec<_> = called
                .into_iter()
                .map(|called| (name("a"), called))
                .collect();
            assert_eq!(reply(&outcomes).status, status, "{outcomes:?}");
        }
    }
}
