//! Being woken when somebody else records something, where the store tells of it.
//!
//! A thread of its own waits for the word and rings; who is rung reads the queue itself. In files
//! there is nobody to listen to: the system tells of changes there.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope};
use std::time::Duration;

use kapi_task::record::queue::Queue;

use crate::error::Error;
use crate::kernel::failed;

/// The longest that the end of listening takes.
const LISTEN: Duration = Duration::from_millis(200);
/// The pause after the store could not be reached.
const PAUSE: Duration = Duration::from_secs(1);

/// Listens until it is dropped.
#[derive(Debug)]
pub(crate) struct Listening(Arc<AtomicBool>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// Rings whenever something may have been recorded, until what is returned is dropped.
pub(crate) fn listen<'scope>(
    scope: &'scope Scope<'scope, '_>,
    queue: &Queue<'_>,
    ring: impl Fn() + Send + 'scope,
) -> Result<Listening, Error> {
    let is_over = Arc::new(AtomicBool::new(false));
    let listening = Listening(Arc::clone(&is_over));
    let Some(mut waker) = queue.waker().map_err(|error| failed(&error))? else {
        return Ok(listening);
    };
    scope.spawn(move || {
        while !is_over.load(Ordering::SeqCst) {
            match waker.wait(LISTEN) {
                Ok(false) => {}
                Ok(true) => ring(),
                // Whoever is rung asks the store itself, and says what is wrong with it.
                Err(_) => {
                    ring();
                    thread::park_timeout(PAUSE);
                }
            }
        }
    });
    Ok(listening)
}
