//! What agents and the person do in a schedule, as shell lines and as the change they make to files.

use std::collections::BTreeMap;

/// Files by path.
pub(super) type Files = BTreeMap<String, String>;

/// Whose words the person's changes hold.
pub(super) const PERSON: &str = "person";

/// Paths that clash with each other: files where others have directories.
const PATHS: [&str; 8] = ["a", "b", "a/x", "b/y/z", "c/d", "c", "e/f", "e/g/h"];

/// One change to the files.
#[derive(Debug, Clone)]
pub(super) enum Edit {
    /// A file gets this content; nothing happens where a directory or a file is in the way.
    Write { path: &'static str, content: String },
    /// A line is added to a file, if it is there.
    Append { path: &'static str, line: String },
    /// Whatever is at a path goes.
    Remove { path: &'static str },
}

/// Draws by lot; the same numbers for the same seed.
#[derive(Debug)]
pub(crate) struct Generator(u64);

impl Generator {
    pub(crate) fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `n`.
    pub(crate) fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        let n = u64::try_from(n.max(1)).unwrap_or(1);
        usize::try_from(self.0 % n).unwrap_or(0)
    }

    /// Returns a change whose text bears the name of whoever makes it.
    pub(super) fn edit(&mut self, who: &str) -> Edit {
        let path = PATHS.get(self.below(PATHS.len())).unwrap_or(&"a");
        let mark = format!("{who}-{}", self.below(1 << 20));
        match self.below(5) {
            0 => Edit::Remove { path },
            1 => Edit::Append { path, line: mark },
            _ => Edit::Write {
                path,
                content: mark,
            },
        }
    }

    /// Returns something that a person does in their checkout, whatever it is like then.
    pub(super) fn step(&mut self) -> String {
        let commit = "git add --all; git commit --quiet --allow-empty --message step";
        let branch = ["main", "other", "third"];
        let branch = branch.get(self.below(branch.len())).unwrap_or(&"main");
        match self.below(8) {
            0 | 1 => self.edit(PERSON).script(),
            2 => format!("{}{commit}", self.edit(PERSON).script()),
            3 => format!("git checkout --quiet --force {branch} || true"),
            4 => format!(
                "git checkout --quiet --force --detach; git rebase --quiet {branch} >/dev/null 2>&1 || git rebase --abort >/dev/null 2>&1 || true"
            ),
            5 => "git ls-files -z | xargs -0 -r rm -rf".to_owned(),
            6 => format!("echo SECRET > .env; {}", self.edit(PERSON).script()),
            _ => {
                "git stash --quiet --include-untracked || true; git reset --quiet --hard".to_owned()
            }
        }
    }
}

impl Edit {
    /// Returns shell lines that make the change.
    pub(super) fn script(&self) -> String {
        match self {
            Self::Write { path, content } => {
                // The shell would follow none: there are no links.
                let parent = path.rsplit_once('/').map_or(".", |(parent, _)| parent);
                format!(
                    "mkdir -p {parent} 2>/dev/null && [ ! -d {path} ] && echo {content} > {path} || true\n"
                )
            }
            Self::Append { path, line } => {
                format!("[ -f {path} ] && echo {line} >> {path} || true\n")
            }
            Self::Remove { path } => {
                // Git knows no empty directory, nor does the model.
                let parent = path.rsplit_once('/').map(|(parent, _)| parent);
                let parent = parent.map(|parent| {
                    format!("rmdir -p --ignore-fail-on-non-empty {parent} 2>/dev/null || true\n")
                });
                let gone = format!("rm -rf {path} 2>/dev/null || true\n");
                gone + &parent.unwrap_or_default()
            }
        }
    }

    /// Makes the same change to files that are only known by name.
    pub(super) fn apply(&self, files: &mut Files) {
        match self {
            Self::Write { path, content } => {
                let is_below = |known: &String| is_below(known, path);
                let is_blocked = files
                    .keys()
                    .any(|known| is_below(known) || self::is_below(path, known));
                if !is_blocked {
                    files.insert((*path).to_owned(), content.clone());
                }
            }
            Self::Append { path, line } => {
                if let Some(content) = files.get_mut(*path) {
                    content.push('\n');
                    content.push_str(line);
                }
            }
            Self::Remove { path } => {
                files.retain(|known, _| known != path && !is_below(known, path));
            }
        }
    }
}

/// Tells whether a path lies below a directory.
fn is_below(path: &str, dir: &str) -> bool {
    path.strip_prefix(dir)
        .is_some_and(|rest| rest.starts_with('/'))
}
