//! Looking at what events of loops watch: files of the project, and refs of its repository.
//!
//! A file counts as changed when its size or the time of its last change did; none is opened.
//! Never busy with it for more than a small part of the time. What follows from a look is the
//! leader's affair.

mod walk;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use kapi_core::pattern;
use kapi_core::task_id::LoopName;
use kapi_core::value::KernelValue;
use kapi_git::repository::Repository;
use kapi_run::host_grants::HostGrants;
use kapi_run::repository_session;
use kapi_sys::cancel::Cancel;
use kapi_sys::clock::monotonic_ms;
use sha2::{Digest as _, Sha256};

use crate::perform::events::walk::EventWalk;
use crate::record::events::Sight;
use crate::rules::definition::trigger::EventSource;

/// How long files must stay as they are before a change counts, in milliseconds: a checkout or a
/// save of many files is one change.
const SETTLE_MS: u64 = 1_000;
/// Files that never stay as they are count as changed after this time, in milliseconds.
const UNSETTLED_MS_MAX: u64 = 30_000;
/// A look that took some time is followed by a pause of so many times as long: it takes at most a
/// fiftieth of one processor.
const PAUSE_FACTOR: u64 = 50;
/// Names of changed files that a run is told.
const CHANGED_MAX: usize = 100;
/// Directories whose changes wake us; more are only looked at now and then.
const DIRECTORIES_MAX: usize = 2_000;
/// Hexadecimal digits of a state.
const STATE_DIGITS: usize = 24;

/// Names, each with what changes when it does.
type Listing = BTreeMap<String, String>;

/// Looks at what the events of a project's loops watch.
#[derive(Debug)]
pub struct EventWatcher {
    root: PathBuf,
    repository: Option<Repository>,
    seen: BTreeMap<LoopName, SourceView>,
    directories: BTreeSet<PathBuf>,
    next_look_ms: u64,
}

/// What was seen of one source.
#[derive(Debug)]
struct SourceView {
    source: EventSource,
    /// What counts, and what counted before.
    now: Listing,
    before: Option<Listing>,
    /// What is different and does not count yet.
    coming: Option<Coming>,
}

#[derive(Debug)]
struct Coming {
    listing: Listing,
    /// Since when it is as it is, in milliseconds of the monotonic clock.
    since_ms: u64,
    /// Since when it is different.
    begun_ms: u64,
}

impl EventWatcher {
    /// Makes one for the project at `root`.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
            repository: None,
            seen: BTreeMap::new(),
            directories: BTreeSet::new(),
            next_look_ms: 0,
        }
    }

    /// Returns the directories in which something happens when there is something to see.
    #[must_use]
    pub const fn directories(&self) -> &BTreeSet<PathBuf> {
        &self.directories
    }

    /// Returns when it is time to look again, in milliseconds of [`monotonic_ms`].
    #[must_use]
    pub const fn next_look_ms(&self) -> u64 {
        self.next_look_ms
    }

    /// Looks at each source, at `now_ms` of the wall clock; nothing is seen before it is time.
    pub fn look<'a>(
        &mut self,
        grants: &HostGrants,
        sources: impl Iterator<Item = (&'a LoopName, &'a EventSource)>,
        now_ms: i64,
    ) -> BTreeMap<LoopName, Sight> {
        let began_ms = monotonic_ms();
        if began_ms < self.next_look_ms {
            return BTreeMap::new();
        }
        self.directories.clear();
        let mut sights = BTreeMap::new();
        let mut before = std::mem::take(&mut self.seen);
        for (name, source) in sources {
            let listing = match self.listing(grants, source) {
                Ok(listing) => listing,
                Err(why) => {
                    sights.insert(name.clone(), Sight::Failed { why });
                    continue;
                }
            };
            let seen = before.remove(name).filter(|seen| seen.source == *source);
            let seen = SourceView::take(seen, source, listing, began_ms);
            sights.insert(name.clone(), seen.sight(now_ms));
            self.seen.insert(name.clone(), seen);
        }
        let took_ms = monotonic_ms().saturating_sub(began_ms);
        self.next_look_ms = began_ms + took_ms.saturating_mul(PAUSE_FACTOR);
        sights
    }

    fn listing(&mut self, grants: &HostGrants, source: &EventSource) -> Result<Listing, String> {
        match source {
            EventSource::Files { globs } => {
                let walk = EventWalk::of(&self.root, globs)?;
                self.watch(walk.directories);
                Ok(walk.files)
            }
            EventSource::GitRef { name } => self.refs(grants, name),
            EventSource::LoopResult { .. } | EventSource::Webhook { .. } => Ok(Listing::new()),
        }
    }

    fn refs(&mut self, grants: &HostGrants, pattern: &str) -> Result<Listing, String> {
        let failed = |error: &dyn std::error::Error| format!("read {pattern}: {error}");
        if self.repository.is_none() {
            let git = repository_session::find_git(grants, &Cancel::new());
            let git = git.map_err(|failure| format!("look at {pattern}: {}", failure.message))?;
            let found = Repository::discover(&git, &self.root).map_err(|error| failed(&error))?;
            self.repository = Some(found);
        }
        let Some(repository) = &self.repository else {
            return Ok(Listing::new());
        };
        let plain = pattern.split(['*', '?']).next().unwrap_or(pattern);
        let prefix = if plain == pattern {
            pattern
        } else {
            plain.rsplit_once('/').map_or("refs", |(above, _)| above)
        };
        let found = repository.refs_at(prefix).map_err(|error| failed(&error))?;
        let is_meant = |name: &str| name == pattern || pattern::is_path(pattern, name);
        let listing = found
            .into_iter()
            .filter(|(name, _)| is_meant(name))
            .map(|(name, commit)| (name, commit.to_string()))
            .collect();
        let common = repository.common_dir().to_path_buf();
        let mut dirs = walk::directories_below(&common.join("refs"), DIRECTORIES_MAX);
        dirs.push(common);
        self.watch(dirs);
        Ok(listing)
    }

    fn watch(&mut self, directories: Vec<PathBuf>) {
        let capacity = DIRECTORIES_MAX.saturating_sub(self.directories.len());
        self.directories
            .extend(directories.into_iter().take(capacity));
    }
}

impl SourceView {
    /// Takes what was listed now into account.
    fn take(seen: Option<Self>, source: &EventSource, listing: Listing, now_ms: u64) -> Self {
        let Some(mut seen) = seen else {
            return Self {
                source: source.clone(),
                now: listing,
                before: None,
                coming: None,
            };
        };
        if listing == seen.now {
            seen.coming = None;
            return seen;
        }
        let coming = match seen.coming.take() {
            Some(coming) if coming.listing == listing => coming,
            other => Coming {
                listing,
                since_ms: now_ms,
                begun_ms: other.map_or(now_ms, |other| other.begun_ms),
            },
        };
        let is_settled = coming.since_ms + SETTLE_MS <= now_ms;
        let is_endless = coming.begun_ms + UNSETTLED_MS_MAX <= now_ms;
        let is_at_once = matches!(source, EventSource::GitRef { .. });
        if is_settled || is_endless || is_at_once {
            seen.before = Some(std::mem::replace(&mut seen.now, coming.listing));
        } else {
            seen.coming = Some(coming);
        }
        seen
    }

    fn sight(&self, now_ms: i64) -> Sight {
        if self.coming.is_some() {
            let pause_ms = i64::try_from(SETTLE_MS).unwrap_or(i64::MAX);
            let again_at_ms = now_ms.saturating_add(pause_ms);
            return Sight::Unsettled { again_at_ms };
        }
        let is_ref = matches!(self.source, EventSource::GitRef { .. });
        if is_ref && self.now.is_empty() {
            return Sight::Nothing;
        }
        let mut payload = BTreeMap::new();
        if let Some(before) = &self.before {
            let changed = changed(before, &self.now);
            payload.insert("changed".to_owned(), KernelValue::List(changed));
        }
        let state = match (&self.source, self.now.iter().next()) {
            (EventSource::GitRef { name }, Some((found, commit))) if name == found => {
                payload.insert("commit".to_owned(), KernelValue::Text(commit.clone()));
                commit.clone()
            }
            _ => hash(&self.now),
        };
        let payload = KernelValue::Map(payload);
        Sight::Is { state, payload }
    }
}

/// Returns the first names that are new, gone or different.
fn changed(before: &Listing, now: &Listing) -> Vec<KernelValue> {
    let gone = before.keys().filter(|name| !now.contains_key(*name));
    let other = now
        .iter()
        .filter(|(name, what)| before.get(*name) != Some(what))
        .map(|(name, _)| name);
    let names: BTreeSet<&String> = gone.chain(other).collect();
    let names = names.into_iter().take(CHANGED_MAX);
    names.map(|name| KernelValue::Text(name.clone())).collect()
}

fn hash(listing: &Listing) -> String {
    let mut hasher = Sha256::new();
    for (name, what) in listing {
        // No name holds a zero byte.
        for part in [name.as_bytes(), &[0], what.as_bytes(), &[0]] {
            hasher.update(part);
        }
    }
    let digits: String = hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect();
    digits.chars().take(STATE_DIGITS).collect()
}

#[cfg(test)]
mod tests {
    use kapi_core::value::KernelValue;

    use super::{Listing, SourceView};
    use crate::record::events::Sight;
    use crate::rules::definition::trigger::EventSource;

    fn listing(entries: &[(&str, &str)]) -> Listing {
        let owned = |(name, what): &(&str, &str)| ((*name).to_owned(), (*what).to_owned());
        entries.iter().map(owned).collect()
    }

    fn files() -> EventSource {
        let globs = vec!["src/**".to_owned()];
        EventSource::Files { globs }
    }

    fn state(seen: &SourceView) -> Option<String> {
        match seen.sight(0) {
            Sight::Is { state, .. } => Some(state),
            Sight::Nothing | Sight::Unsettled { .. } | Sight::Failed { .. } => None,
        }
    }

    #[test]
    fn a_change_counts_when_it_has_settled_or_never_does() {
        let at = |n: usize| listing(&[("src/a", &n.to_string())]);
        let mut seen = SourceView::take(None, &files(), at(0), 0);
        let first = state(&seen).unwrap();
        seen = SourceView::take(Some(seen), &files(), at(1), 500);
        assert_eq!(seen.sight(7), Sight::Unsettled { again_at_ms: 1_007 });
        seen = SourceView::take(Some(seen), &files(), at(1), 1_499);
        assert_eq!(state(&seen), None);
        seen = SourceView::take(Some(seen), &files(), at(1), 1_500);
        let second = state(&seen).unwrap();
        assert_ne!(first, second);
        // Back before anybody noticed: nothing happened.
        seen = SourceView::take(Some(seen), &files(), at(2), 2_000);
        seen = SourceView::take(Some(seen), &files(), at(1), 2_100);
        assert_eq!(state(&seen).as_ref(), Some(&second));
        for n in 3..33 {
            seen = SourceView::take(Some(seen), &files(), at(n), 1_000 * n as u64);
            assert_eq!(state(&seen), None, "{n}");
        }
        seen = SourceView::take(Some(seen), &files(), at(33), 33_000);
        assert!(state(&seen).is_some());
    }

    #[test]
    fn a_run_is_told_what_changed() {
        let before = listing(&[("src/a", "1"), ("src/b", "1"), ("src/c", "1")]);
        let after = listing(&[("src/a", "1"), ("src/b", "2"), ("src/d", "1")]);
        let mut seen = SourceView::take(None, &files(), before, 0);
        seen = SourceView::take(Some(seen), &files(), after.clone(), 1);
        seen = SourceView::take(Some(seen), &files(), after, 1_001);
        let Sight::Is { payload, .. } = seen.sight(0) else {
            panic!("it has settled")
        };
        let names = ["src/b", "src/c", "src/d"].map(|name| KernelValue::Text(name.to_owned()));
        assert_eq!(
            payload.get("changed"),
            Some(&KernelValue::List(names.to_vec()))
        );
    }

    #[test]
    fn a_ref_counts_at_once_and_one_that_is_not_there_is_nothing() {
        let source = EventSource::GitRef {
            name: "refs/heads/main".to_owned(),
        };
        let mut seen = SourceView::take(None, &source, Listing::new(), 0);
        assert_eq!(seen.sight(0), Sight::Nothing);
        let main = listing(&[("refs/heads/main", "abc")]);
        seen = SourceView::take(Some(seen), &source, main, 1);
        assert_eq!(state(&seen).as_deref(), Some("abc"));
    }
}
