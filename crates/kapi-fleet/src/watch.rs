//! Waits until somebody has appended to the log, instead of looking again and again.
//!
//! Has a connection of its own, so that whoever waits keeps nobody from asking. A lost connection
//! counts as news: what was said meanwhile was not heard.

use std::time::{Duration, Instant};

use crate::client::FleetClient;
use crate::error::FleetError;

/// What waits for news.
pub struct NewsWatch {
    client: FleetClient,
    subject: String,
    is_listening: bool,
}

/// What came of waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum News {
    /// Something was appended, or may have been.
    Some,
    /// Nothing was appended.
    None,
}

impl NewsWatch {
    pub(crate) const fn of(client: FleetClient, subject: String) -> Self {
        Self {
            client,
            subject,
            is_listening: false,
        }
    }

    /// Waits for news, at most this long.
    ///
    /// # Errors
    /// When the cluster cannot be reached within the client's patience; it may be called again.
    pub fn wait(&mut self, timeout: Duration) -> Result<News, FleetError> {
        let deadline = Instant::now() + timeout;
        if !self.is_listening {
            self.client.subscribe(&self.subject)?;
            self.is_listening = true;
            // Whatever was appended before it listened was not heard.
            return Ok(News::Some);
        }
        match self.client.listen(deadline) {
            Ok(Some(_)) => {
                self.drain();
                Ok(News::Some)
            }
            Ok(None) => Ok(News::None),
            Err(_) => {
                self.is_listening = false;
                self.wait(timeout)
            }
        }
    }

    /// What was said in one breath is one piece of news.
    fn drain(&mut self) {
        const MESSAGES_MAX: u32 = 1_000;
        for _ in 0..MESSAGES_MAX {
            match self.client.listen(Instant::now()) {
                Ok(Some(_)) => {}
                Ok(None) => return,
                Err(_) => {
                    self.is_listening = false;
                    return;
                }
            }
        }
    }
}
