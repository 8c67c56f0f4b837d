//! The adapters as their callers see them: launches, streams of real runs, the script agent.

#[cfg(test)]
mod command;
#[cfg(test)]
mod fixtures;
#[cfg(test)]
mod gate;
#[cfg(test)]
mod hook;
#[cfg(test)]
mod hook_inject;
#[cfg(test)]
mod launches;
#[cfg(test)]
mod resilience;
#[cfg(test)]
mod script_agent;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tools;
