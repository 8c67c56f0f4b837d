//! What can go wrong with guardrail memory.
//!
//! Words only; decides nothing.

use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_sys::disk::DiskError;
use kapi_sys::lock::LockError;

use crate::record::guardrails::{DOMAINS_MAX, FILE_BYTES_MAX, PROPOSED_MAX};
use crate::rules::guardrail::lesson::LessonError;
use crate::rules::guardrail::{Domain, DomainError};

/// A change or a look that failed.
#[derive(Debug, thiserror::Error)]
pub enum MemoryError {
    /// The domain is no domain.
    #[error(transparent)]
    Domain(#[from] DomainError),
    /// The lesson is no lesson.
    #[error(transparent)]
    Lesson(#[from] LessonError),
    /// Only a person may do this.
    #[error("{action} a guardrail: only the user may, not {actor}")]
    OnlyPerson {
        /// What was asked, as a verb.
        action: &'static str,
        /// Who asked.
        actor: Actor,
    },
    /// No entry has this id.
    #[error("find guardrail {id}")]
    NotFound {
        /// What was asked for.
        id: String,
    },
    /// Several entries begin so.
    #[error("find one guardrail {id}: it matches {}", ids.join(", "))]
    Ambiguous {
        /// What was asked for.
        id: String,
        /// The entries it may mean.
        ids: Vec<String>,
    },
    /// So many lessons wait for a person that no more are taken.
    #[error("add to guardrails {domain}: {PROPOSED_MAX} proposed lessons are waiting for review")]
    TooManyProposed {
        /// The domain.
        domain: Domain,
    },
    /// There are too many domains for another.
    #[error("add guardrails {domain}: there are {DOMAINS_MAX} domains already")]
    TooManyDomains {
        /// The domain.
        domain: Domain,
    },
    /// The file is larger than any that is read.
    #[error("read {}: it is larger than {FILE_BYTES_MAX} bytes", file.display())]
    TooLarge {
        /// The file.
        file: PathBuf,
    },
    /// The file is a symbolic link, which a change would replace.
    #[error("change {}: it is a symbolic link", file.display())]
    IsLink {
        /// The file.
        file: PathBuf,
    },
    /// Somebody saves the file again and again.
    #[error("change {}: another process keeps changing it", file.display())]
    KeepsChanging {
        /// The file.
        file: PathBuf,
    },
    /// Another process holds the lock.
    #[error(transparent)]
    Lock(#[from] LockError),
    /// The disk refused.
    #[error(transparent)]
    Disk(#[from] DiskError),
}
