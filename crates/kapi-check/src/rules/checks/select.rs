//! Which directories are projects of their own, and which check each has for each verb.
//!
//! In one directory the first profile of the table that provides a verb wins. A directory that a
//! workspace further up takes in is no project of its own.

use std::collections::BTreeSet;

use super::directory::{Directory, WorkspaceNotation};
use super::profile::{CheckProfile, CheckProfiles, CheckStep};
use super::{Check, CheckChoice, CheckVerb, ProjectRoot, makefile, mise};
use crate::rules::proof::ecosystem::EcosystemTable;

/// What `npm init` writes where a project has no tests.
const NO_TEST: &str = "no test specified";

/// One directory that is a project, and what its workspace tells.
struct RootSite<'a> {
    directory: &'a Directory,
    /// The scripts that members of its workspace have.
    member_scripts: BTreeSet<&'a str>,
    /// Every directory.
    all: &'a [&'a Directory],
}

/// Returns the projects among directories, in the order of their paths.
#[must_use]
pub fn roots(
    profiles: &CheckProfiles,
    ecosystems: &EcosystemTable,
    directories: &[Directory],
) -> Vec<ProjectRoot> {
    let mut sorted: Vec<&Directory> = directories.iter().collect();
    sorted.sort_by(|one, other| one.path.cmp(&other.path));
    let mut found: Vec<(&Directory, ProjectRoot)> = Vec::new();
    for directory in &sorted {
        let free = free(profiles, directory, &sorted);
        let is_above = |root: &Directory| root.relative(&directory.path).is_some();
        let above: Vec<&ProjectRoot> = found
            .iter()
            .filter(|(root, _)| is_above(root))
            .map(|(_, root)| root)
            .collect();
        let is_marked = free.iter().any(|profile| is_marked(profile, directory));
        let is_hinted = || {
            free.iter().any(|profile| is_hinted(profile, directory))
                || mise::FILES.iter().any(|name| directory.has(name))
        };
        let is_inner = || {
            let mut inner = free.iter().filter(|profile| is_inner(profile, directory));
            inner.any(|profile| !above.iter().any(|root| is_of(profiles, root, profile)))
        };
        let is_tested = || free.iter().any(|one| is_tested(one, directory, &sorted));
        if is_marked || (above.is_empty() && is_hinted()) || is_inner() || is_tested() {
            let site = RootSite {
                directory,
                member_scripts: member_scripts(directory, &sorted),
                all: &sorted,
            };
            found.push((directory, root(&free, ecosystems, &site)));
        }
    }
    found.into_iter().map(|(_, root)| root).collect()
}

/// Returns the profiles that no directory further up keeps from this one.
pub(super) fn free<'a>(
    profiles: &'a CheckProfiles,
    directory: &Directory,
    all: &[&Directory],
) -> Vec<&'a CheckProfile> {
    let above: Vec<&Directory> = all
        .iter()
        .filter(|other| other.relative(&directory.path).is_some())
        .copied()
        .collect();
    let lists: Vec<&Directory> = all
        .iter()
        .filter(|other| !other.declared.is_empty())
        .copied()
        .collect();
    let profiles = profiles.all.iter();
    profiles
        .filter(|profile| !is_covered(profile, directory, &above, &lists))
        .collect()
}

/// Tells whether a project is of the ecosystem of a profile.
pub(super) fn is_of(profiles: &CheckProfiles, root: &ProjectRoot, profile: &CheckProfile) -> bool {
    let mut own = profiles
        .all
        .iter()
        .filter(|one| root.profiles.contains(&one.id));
    own.any(|one| one.ecosystem == profile.ecosystem)
}

/// Returns the scripts that the members of a directory's workspace of packages have.
fn member_scripts<'a>(directory: &Directory, all: &[&'a Directory]) -> BTreeSet<&'a str> {
    let members = all
        .iter()
        .filter(|other| directory.declares(WorkspaceNotation::Node, &other.path));
    let scripts = members.flat_map(|member| &member.scripts);
    scripts
        .filter(|(_, line)| !line.contains(NO_TEST))
        .map(|(name, _)| name.as_str())
        .collect()
}

/// Returns the projects that a person means who stands in a directory: the nearest at or above it,
/// and those below that. Without one above, those below where they stand at the top.
#[must_use]
pub fn around(roots: &[ProjectRoot], path: &str) -> Vec<ProjectRoot> {
    let top = nearest(roots, path).map_or("", |root| root.path.as_str());
    let is_meant = |root: &&ProjectRoot| is_within(&root.path, top);
    roots.iter().filter(is_meant).cloned().collect()
}

/// Returns the nearest project at or above a path.
#[must_use]
pub fn nearest<'a>(roots: &'a [ProjectRoot], path: &str) -> Option<&'a ProjectRoot> {
    let above = roots.iter().filter(|root| is_within(path, &root.path));
    above.max_by_key(|root| root.path.len())
}

/// Tells whether a path is a directory or lies below it.
pub(super) fn is_within(path: &str, directory: &str) -> bool {
    directory.is_empty()
        || path
            .strip_prefix(directory)
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

fn is_marked(profile: &CheckProfile, directory: &Directory) -> bool {
    directory.has_any(&profile.markers) && has_content(profile, directory)
}

fn is_hinted(profile: &CheckProfile, directory: &Directory) -> bool {
    let is_at_top = directory.path.is_empty() && directory.has_any(&profile.top);
    (is_at_top || directory.has_any(&profile.hints))
        && !directory.has_any(&profile.unless)
        && has_content(profile, directory)
}

/// Tells whether the tests in a directory of the top show what the top is, if nothing else does.
fn is_tested(profile: &CheckProfile, directory: &Directory, all: &[&Directory]) -> bool {
    directory.path.is_empty() && all.iter().any(|other| profile.is_tested_by(other))
}

/// Tells whether a directory has checks of its own among its scripts.
pub(super) fn is_inner(profile: &CheckProfile, directory: &Directory) -> bool {
    let is_script = |name: &str| {
        let line = directory.scripts.get(name);
        line.is_some_and(|line| !line.contains(NO_TEST))
    };
    directory.has_any(&profile.inner)
        && !directory.has_any(&profile.unless)
        && profile.scripts().any(is_script)
}

fn has_content(profile: &CheckProfile, directory: &Directory) -> bool {
    let is_said = |files: &[String], any: &[String]| directory.mentions(files, any);
    profile
        .content
        .as_ref()
        .is_none_or(|content| is_said(&content.files, &content.any))
}

/// Tells whether a directory elsewhere takes this one in.
fn is_covered(
    profile: &CheckProfile,
    directory: &Directory,
    above: &[&Directory],
    lists: &[&Directory],
) -> bool {
    let is_below = || above.iter().any(|other| other.has_any(&profile.covered_by));
    let Some(workspace) = profile.workspace else {
        return !directory.has_any(&profile.apart) && is_below();
    };
    let is_member = is_declared(workspace, directory, lists);
    if directory.has_any(&profile.apart) || is_apart(workspace, directory, is_member) {
        return false;
    }
    let is_left_out = || {
        let mut lists = above.iter().filter(|other| other.is_workspace(workspace));
        !is_member
            && profile.takes_all_in()
            && lists.any(|other| !other.excludes(workspace, &directory.path))
    };
    (is_member && !profile.each) || is_left_out() || is_below()
}

/// Tells whether a workspace in a workspace is one of its own: where the outer does not name it; Cargo
/// takes none in, whatever is named.
fn is_apart(workspace: WorkspaceNotation, directory: &Directory, is_member: bool) -> bool {
    directory.is_workspace(workspace)
        && !workspace.is_in_members()
        && (workspace == WorkspaceNotation::Cargo || !is_member)
}

/// Tells whether a list elsewhere names a directory.
pub(super) fn is_declared(
    workspace: WorkspaceNotation,
    directory: &Directory,
    lists: &[&Directory],
) -> bool {
    let mut others = lists.iter().filter(|other| other.path != directory.path);
    others.any(|other| other.declares(workspace, &directory.path))
}

fn root(free: &[&CheckProfile], ecosystems: &EcosystemTable, site: &RootSite<'_>) -> ProjectRoot {
    let directory = site.directory;
    let is_recognised = |profile: &CheckProfile| {
        is_marked(profile, directory)
            || is_hinted(profile, directory)
            || is_inner(profile, directory)
    };
    let all = free.iter().copied();
    let mut recognised: Vec<&CheckProfile> = all.filter(|one| is_recognised(one)).collect();
    if recognised.is_empty() {
        let tested = |profile: &&CheckProfile| is_tested(profile, directory, site.all);
        recognised.extend(free.iter().copied().filter(tested));
    }
    let mut first_on_path: Vec<String> = Vec::new();
    let mut caches: Vec<String> = Vec::new();
    let own = recognised
        .iter()
        .filter_map(|profile| ecosystems.get(&profile.ecosystem));
    for ecosystem in own {
        add_new(
            &mut first_on_path,
            ecosystem.path.iter().map(String::as_str),
        );
        add_new(&mut caches, ecosystem.caches_below_home());
    }
    ProjectRoot {
        path: directory.path.clone(),
        profiles: recognised.iter().map(|one| one.id.clone()).collect(),
        choices: CheckVerb::ALL
            .iter()
            .filter_map(|verb| choose(&recognised, site, *verb))
            .collect(),
        first_on_path,
        caches,
    }
}

fn add_new<'a>(to: &mut Vec<String>, all: impl Iterator<Item = &'a str>) {
    for one in all {
        if !to.iter().any(|known| known == one) {
            to.push(one.to_owned());
        }
    }
}

/// Returns the check of the first profile that provides a verb, or why none of those that know it
/// does.
fn choose(
    recognised: &[&CheckProfile],
    site: &RootSite<'_>,
    verb: CheckVerb,
) -> Option<CheckChoice> {
    let known = || {
        let known = recognised.iter().copied();
        known.filter_map(move |profile| Some((profile, profile.step(verb)?)))
    };
    let first_of = |profile: &CheckProfile, steps: &[CheckStep]| {
        let mut asked = steps.iter();
        asked.find_map(|step| check(profile, step, site, verb))
    };
    let mut ordinary = known().map(|(profile, step)| {
        first_of(profile, &step.first).or_else(|| check(profile, step, site, verb))
    });
    let mut last = known().map(|(profile, step)| first_of(profile, &step.last));
    if let Some(check) = ordinary
        .find_map(|one| one)
        .or_else(|| last.find_map(|one| one))
    {
        return Some(CheckChoice::Check(check));
    }
    let declined = known().filter(|(_, step)| !step.optional);
    let reasons = declined.filter_map(|(profile, step)| {
        let reason = command(profile, step, site).err()?;
        Some((profile, step.none.clone().unwrap_or(reason)))
    });
    let reasons: Vec<(&CheckProfile, String)> = reasons.collect();
    let (first, _) = reasons.first()?;
    let mut told: Vec<String> = Vec::new();
    add_new(&mut told, reasons.iter().map(|(_, reason)| reason.as_str()));
    Some(CheckChoice::Declined {
        verb,
        profile: first.id.clone(),
        reason: told.join("; "),
    })
}

/// Returns the check that a step makes, if the project asks for it.
fn check(
    profile: &CheckProfile,
    step: &CheckStep,
    site: &RootSite<'_>,
    verb: CheckVerb,
) -> Option<Check> {
    Some(Check {
        root: site.directory.path.clone(),
        verb,
        provider: profile.id.clone(),
        command: command(profile, step, site).ok()?,
        timeout_ms: verb.timeout_ms(),
        needs: step.needs.clone(),
        nothing: step.nothing.clone(),
        otherwise: step
            .otherwise
            .as_deref()
            .and_then(|step| check(profile, step, site, verb))
            .map(Box::new),
    })
}

/// Returns the command of a step, or why the project does not ask for it.
fn command(
    profile: &CheckProfile,
    step: &CheckStep,
    site: &RootSite<'_>,
) -> Result<String, String> {
    let directory = site.directory;
    if !step.file.is_empty() && !directory.has_any(&step.file) {
        return Err(format!("there is no {}", step.file.join(" or ")));
    }
    if let Some(mention) = &step.mentions
        && !directory.mentions(&mention.files, &mention.any)
    {
        let (files, texts) = (mention.files.join(" or "), mention.any.join(" or "));
        return Err(format!("{files} does not mention {texts}"));
    }
    if let Some(script) = &step.script {
        match directory.scripts.get(script) {
            None => return Err(format!("package.json has no script {script:?}")),
            Some(line) if line.contains(NO_TEST) => {
                return Err(format!(
                    "the script {script:?} of package.json is a placeholder"
                ));
            }
            Some(_) => {}
        }
    }
    if let Some(script) = &step.members {
        let own = directory.scripts.get(script);
        let has_own = own.is_some_and(|line| !line.contains(NO_TEST));
        if has_own || !site.member_scripts.contains(script.as_str()) {
            return Err(format!("no member has the script {script:?}"));
        }
    }
    if step.target.is_empty() {
        return Ok(step.run.clone());
    }
    let has = |target: &&String| {
        let names = profile.hints.iter();
        let mut makefiles = names.filter_map(|name| directory.texts.get(name));
        makefiles.any(|text| makefile::has_target(text, target))
    };
    match step.target.iter().find(has) {
        Some(target) => Ok(step.run.replace("{target}", target)),
        None => Err(format!(
            "the {} has no target {}",
            profile
                .hints
                .last()
                .map_or("makefile", String::as_str)
                .trim_start_matches('.'),
            step.target.join(" or ")
        )),
    }
}
