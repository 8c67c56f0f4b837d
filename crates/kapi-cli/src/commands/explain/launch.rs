//! `kapi launch --explain`: how a launch would be set up.
//!
//! The same resolution as the launch itself.

use std::fs;
use std::path::PathBuf;

use kapi_core::isolation::NetworkMode;

use super::ExplainRows;
use super::route::{self, ExplainSubject};
use crate::commands::launch::Args;
use crate::config::source::ValueSource;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::profile::flags::ProfileFlags;
use crate::profile::include::Include;
use crate::profile::launch::{self, LaunchProfile};

/// Explains a launch.
pub(crate) fn explain(context: &Context, args: &Args) -> Result<Exit, Error> {
    let named = args.explained().map(|path| context.cwd.join(path));
    let named = named.unwrap_or_else(|| context.cwd.clone());
    let project = fs::canonicalize(&named)
        .map_err(|error| Error::usage(format!("failed to find {}: {error}", named.display())))?;
    let profile = launch::resolve(context, &project, &args.flags)?;
    let rows = rows(context, &project, &args.flags, &profile)?;
    rows.show(context, "launch", &profile.notes);
    Ok(Exit::Success)
}

fn rows(
    context: &Context,
    project: &std::path::Path,
    flags: &ProfileFlags,
    profile: &LaunchProfile,
) -> Result<ExplainRows, Error> {
    let mut rows = ExplainRows::default();
    let subject = ExplainSubject {
        agent: &profile.agent.value,
        agent_source: &profile.agent.source,
        settings: &profile.settings,
        level: profile.level.value,
        network: profile.network.value,
        grant: &profile.grant,
        origins: &profile.origins,
    };
    who(flags, profile, &mut rows);
    route::model(context, &subject, &mut rows);
    rows.add(
        "sandbox",
        profile.level.value.to_string(),
        &profile.level.source,
    );
    let (mode, source) = mode(project, flags);
    rows.add("workspace mode", mode, &source);
    rows.add(
        "network",
        profile.network.value.to_string(),
        &profile.network.source,
    );
    allowed(profile, &mut rows);
    route::reach(context, &subject, &mut rows);
    route::sight(context, &subject, &mut rows);
    shared_in(profile, &mut rows);
    route::variables(context, &mut rows);
    environment(profile, &mut rows);
    route::limits(&subject, &mut rows);
    route::cassettes(&subject, &mut rows);
    if let Some(mirror) = &profile.grant.maven_mirror {
        rows.add_all(
            "maven mirror",
            mirror,
            &profile.origins.of("maven.mirror_url"),
        );
    }
    if let Some(mapping) = &profile.mapping {
        // A table that cannot be used would end the launch, so it ends this too.
        profile.mapping()?;
        rows.add(
            "tool mapping",
            mapping.value.display().to_string(),
            &mapping.source,
        );
    }
    outcome(flags, profile, &mut rows);
    Ok(rows)
}

/// Adds the profile and the agent.
fn who(flags: &ProfileFlags, profile: &LaunchProfile, rows: &mut ExplainRows) {
    rows.add("profile", &profile.profile.value, &profile.profile.source);
    for path in &profile.narrowed_by {
        let source = ValueSource::Line {
            path: path.clone(),
            line: 1,
        };
        rows.add("narrowed by", path.display().to_string(), &source);
    }
    rows.add(
        "agent",
        profile.agent.value.to_string(),
        &profile.agent.source,
    );
    let talk = if profile.is_interactive {
        "by you, in this terminal"
    } else {
        "by its prompt"
    };
    let source = if flags.interactive {
        ValueSource::Flag("--interactive")
    } else {
        profile.agent.source.clone()
    };
    rows.add("interactive", talk, &source);
}

fn mode(project: &std::path::Path, flags: &ProfileFlags) -> (&'static str, ValueSource) {
    let has_git = project.join(".git").exists();
    match (flags.worktree_mode, flags.overlay_mode) {
        (true, _) => ("worktree", ValueSource::Flag("--worktree-mode")),
        (false, true) => ("overlay", ValueSource::Flag("--overlay-mode")),
        (false, false) if flags.branch.is_some() && has_git => {
            ("worktree", ValueSource::Flag("--branch"))
        }
        (false, false) => ("overlay", ValueSource::Default),
    }
}

fn allowed(profile: &LaunchProfile, rows: &mut ExplainRows) {
    if profile.network.value != NetworkMode::Filtered {
        return;
    }
    let n_own = profile.grant.allow.len() - profile.added.allow.len();
    for rule in profile.grant.allow.iter().take(n_own) {
        rows.add_all("allow", rule.text(), &profile.origins.of("network.allow"));
    }
    for rule in &profile.added.allow {
        rows.add("allow", &rule.value, &rule.source);
    }
}

fn shared_in(profile: &LaunchProfile, rows: &mut ExplainRows) {
    let is_added = |path: &PathBuf| {
        let wanted = Include::ReadOnly(path.clone());
        profile
            .added
            .shared_in
            .iter()
            .any(|shared_in| shared_in.value == wanted)
    };
    for path in profile
        .grant
        .read_only
        .iter()
        .filter(|path| !is_added(path))
    {
        let sources = profile.origins.of("sandbox.read_only");
        rows.add_all("read-only", path.display().to_string(), &sources);
    }
    for shared_in in &profile.added.shared_in {
        match &shared_in.value {
            Include::ReadOnly(path) => {
                rows.add("read-only", path.display().to_string(), &shared_in.source);
            }
            Include::Copied(path) => {
                rows.add("copied", format!("~/{}", path.display()), &shared_in.source);
            }
            Include::Missing(_) => {}
        }
    }
}

/// Adds the names of variables; what they hold is nobody's business here.
fn environment(profile: &LaunchProfile, rows: &mut ExplainRows) {
    let name = profile.agent.value.name();
    let is_added = |list: &[crate::config::source::SourcedValue<String>], name: &String| {
        list.iter().any(|at| at.value == *name)
    };
    for variable in &profile.settings.pass_env {
        if !is_added(&profile.added.pass, variable) {
            let sources = profile.origins.of(&format!("agents.{name}.pass_env"));
            rows.add_all("variable passed", variable, &sources);
        }
    }
    for variable in &profile.added.pass {
        rows.add("variable passed", &variable.value, &variable.source);
    }
    for variable in profile.settings.env.keys() {
        if !is_added(&profile.added.set, variable) {
            let sources = profile.origins.of(&format!("agents.{name}.env.{variable}"));
            rows.add_all("variable set", variable, &sources);
        }
    }
    for variable in &profile.added.set {
        rows.add("variable set", &variable.value, &variable.source);
    }
}

/// Adds what becomes of the work.
fn outcome(flags: &ProfileFlags, profile: &LaunchProfile, rows: &mut ExplainRows) {
    let branch = flags.branch.as_deref();
    let source = branch.map_or(ValueSource::Default, |_| ValueSource::Flag("--branch"));
    rows.add(
        "branch",
        branch.unwrap_or("none: the changes stay in the sandbox"),
        &source,
    );
    let commits = if profile.keep_commits.value {
        "the agent's own, with their messages"
    } else {
        "one for all of the work"
    };
    rows.add("commits", commits, &profile.keep_commits.source);
    let push = if profile.push.value { "yes" } else { "no" };
    rows.add("push", push, &profile.push.source);
    rows.add("remote", &profile.remote.value, &profile.remote.source);
    rows.add(
        "commit message",
        &profile.message.value,
        &profile.message.source,
    );
    for author in &profile.co_authors {
        rows.add("co-author", author.value.to_string(), &author.source);
    }
}
