//! How one launch is set up: `agent-sandbox.yaml`, read as it is, and the profiles that come with
//! Kapi.
//!
//! A profile is the person's, a part of Kapi, or the project's; a project's may only narrow. What
//! becomes of it together with configuration and flags is decided in [`launch`].

pub(crate) mod built_in;
pub(crate) mod command;
pub(crate) mod find;
pub(crate) mod flags;
pub(crate) mod include;
mod key;
pub(crate) mod launch;
pub(crate) mod message;
pub(crate) mod read;
pub(crate) mod trusted;

use std::path::PathBuf;

use kapi_agent::hook::agent_type::AgentType;
use kapi_core::isolation::NetworkMode;
use kapi_gateway::egress::rule::EgressRule;
use kapi_sandbox::podman::options::Userns;

use crate::config::source::SourcedValue;
use crate::profile::include::Include;
use crate::profile::message::CoAuthor;

/// Whose word a profile is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProfileOwner {
    /// The person's, or a part of Kapi.
    Person,
    /// The project's: an agent could have written it.
    Project,
}

/// What `agent.type` names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AgentName {
    /// Pi.
    Pi,
    /// A kind that status knows.
    Of(AgentType),
}

/// One profile as it was read; what it leaves out is absent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProfileFile {
    /// Its name: that of its file without the ending.
    pub(crate) name: String,
    /// Its file; `None` for a built-in one.
    pub(crate) path: Option<PathBuf>,
    /// Whose it is.
    pub(crate) owner: ProfileOwner,
    /// The kind of agent.
    pub(crate) agent_type: Option<SourcedValue<AgentName>>,
    /// The shell line that starts the agent.
    pub(crate) command: Option<SourcedValue<String>>,
    /// Host paths that are lent.
    pub(crate) include: Vec<SourcedValue<Include>>,
    /// Variables of the host to pass on.
    pub(crate) pass: Vec<SourcedValue<String>>,
    /// Variables to set.
    pub(crate) set: Vec<SourcedValue<(String, String)>>,
    /// Memory.
    pub(crate) memory_bytes: Option<SourcedValue<u64>>,
    /// Thousandths of a processor.
    pub(crate) cpu_millis: Option<SourcedValue<u64>>,
    /// Processes and threads.
    pub(crate) processes: Option<SourcedValue<u64>>,
    /// The image without its tag.
    pub(crate) image_name: Option<SourcedValue<String>>,
    /// The image's tag.
    pub(crate) image_tag: Option<SourcedValue<String>>,
    /// Whether a branch is pushed.
    pub(crate) push: Option<SourcedValue<bool>>,
    /// The remote.
    pub(crate) remote: Option<SourcedValue<String>>,
    /// The template of the commit's message.
    pub(crate) commit_message: Option<SourcedValue<String>>,
    /// Who is named beside the author.
    pub(crate) co_authors: Vec<SourcedValue<CoAuthor>>,
    /// Whether the agent's own commits are kept.
    pub(crate) keep_commits: Option<SourcedValue<bool>>,
    /// What can be reached.
    pub(crate) network: Option<SourcedValue<NetworkMode>>,
    /// Hosts that may be reached.
    pub(crate) allow: Vec<SourcedValue<EgressRule>>,
    /// Whether sandboxes may be made inside.
    pub(crate) nested_namespaces: Option<SourcedValue<bool>>,
    /// Who the person is in a container.
    pub(crate) userns: Option<SourcedValue<Userns>>,
    /// Where Maven's releases come from.
    pub(crate) mirror: Option<SourcedValue<String>>,
}

impl ProfileFile {
    /// Returns a profile that says nothing.
    pub(crate) fn named(name: &str, path: Option<PathBuf>, owner: ProfileOwner) -> Self {
        Self {
            name: name.to_owned(),
            path,
            owner,
            agent_type: None,
            command: None,
            include: Vec::new(),
            pass: Vec::new(),
            set: Vec::new(),
            memory_bytes: None,
            cpu_millis: None,
            processes: None,
            image_name: None,
            image_tag: None,
            push: None,
            remote: None,
            commit_message: None,
            co_authors: Vec::new(),
            keep_commits: None,
            network: None,
            allow: Vec::new(),
            nested_namespaces: None,
            userns: None,
            mirror: None,
        }
    }

    /// Returns where it is, for a person.
    pub(crate) fn location(&self) -> String {
        self.path.as_ref().map_or_else(
            || format!("built-in {}", self.name),
            |path| path.display().to_string(),
        )
    }
}

#[cfg(test)]
mod tests;
