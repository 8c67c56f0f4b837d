//! What the commits of a soak hold: each its own number in its own file, on the commit that all began
//! at, and nothing else.
//!
//! Asks git twice, however many there are.

use std::collections::BTreeMap;

use crate::soak::machine::SoakMachine;

/// A commit that should hold a number.
#[derive(Debug)]
pub(super) struct NumberedWork {
    /// Whose work it is, for people.
    pub(super) whose: String,
    /// The commit, or its branch.
    pub(super) revision: String,
    /// The file.
    pub(super) file: String,
    /// What it has to hold.
    pub(super) number: u64,
    /// Whether it may be on what an agent that was killed had begun of it.
    pub(super) goes_on: bool,
}

/// Returns what is wrong with any of them.
pub(super) fn faults(machine: &SoakMachine, works: &[NumberedWork], base: &str) -> Vec<String> {
    let asked = works.iter().map(|work| {
        let NumberedWork { revision, file, .. } = work;
        format!("{revision}^{{commit}}\n{revision}:{file}\n")
    });
    let asked: String = asked.collect();
    let answers = match machine.git_asked(&["cat-file", "--batch"], asked.into_bytes()) {
        Ok(text) => answers(&text),
        Err(why) => return vec![why],
    };
    if answers.len() != works.len() * 2 {
        let n = answers.len();
        return vec![format!("git answered {n} of {} questions", works.len() * 2)];
    }
    let mut faults = Vec::new();
    let mut commits = Vec::new();
    for (work, pair) in works.iter().zip(answers.chunks(2)) {
        let [Some((commit, header)), Some((_, content))] = pair else {
            faults.push(format!("{} lost its work: {work:?}", work.whose));
            continue;
        };
        if content.trim_end() != work.number.to_string() {
            let (whose, file) = (&work.whose, &work.file);
            faults.push(format!("{whose} has {content:?} in {file}: {work:?}"));
        }
        let parents = header.lines().take_while(|line| !line.is_empty());
        let parents: Vec<&str> = parents
            .filter_map(|line| line.strip_prefix("parent "))
            .collect();
        let is_own = || work.goes_on && goes_on_with_its_own(machine, commit, work, base);
        if parents != [base] && !is_own() {
            faults.push(format!("{} is on {parents:?}, not on {base}", work.whose));
        }
        commits.push((commit.as_str(), work));
    }
    faults.extend(other_changes(machine, &commits));
    faults
}

/// Tells whether every commit since the base is on one other, and changes the file of the work alone.
fn goes_on_with_its_own(
    machine: &SoakMachine,
    commit: &str,
    work: &NumberedWork,
    base: &str,
) -> bool {
    let range = format!("{base}..{commit}");
    let args = ["log", "--format=on %P", "--name-only", &range];
    let Ok(listed) = machine.git_asked(&args, Vec::new()) else {
        return false;
    };
    let mut lines = listed.lines().filter(|line| !line.is_empty());
    let is_on_base = listed.lines().any(|line| line == format!("on {base}"));
    let is_own = |line: &str| match line.strip_prefix("on ") {
        Some(parents) => !parents.contains(' '),
        None => line == work.file,
    };
    is_on_base && lines.all(is_own)
}

/// Returns which commits change anything but the file of their work.
fn other_changes(machine: &SoakMachine, commits: &[(&str, &NumberedWork)]) -> Vec<String> {
    let asked = commits.iter().map(|(commit, _)| format!("{commit}\n"));
    let asked: String = asked.collect();
    let args = ["diff-tree", "--stdin", "-r", "--name-only"];
    let listed = match machine.git_asked(&args, asked.into_bytes()) {
        Ok(text) => text,
        Err(why) => return vec![why],
    };
    let mut changed: BTreeMap<&str, Vec<&str>> = commits
        .iter()
        .map(|(commit, _)| (*commit, Vec::new()))
        .collect();
    let mut at = "";
    for line in listed.lines() {
        if changed.contains_key(line) {
            at = line;
        } else if let Some(paths) = changed.get_mut(at) {
            paths.push(line);
        }
    }
    let others = commits.iter().filter_map(|(commit, work)| {
        let paths = changed.get(commit)?;
        let is_right = *paths == [work.file.as_str()];
        (!is_right).then(|| format!("{} changes {paths:?}: {work:?}", work.whose))
    });
    others.collect()
}

/// Reads what `git cat-file --batch` says: of each question the object's name and content, or nothing
/// where there is none.
fn answers(text: &str) -> Vec<Option<(String, String)>> {
    let mut found = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (line, after) = rest.split_once('\n').unwrap_or((rest, ""));
        let mut words = line.rsplitn(3, ' ');
        let size = words.next().and_then(|size| size.parse::<usize>().ok());
        let name = words.nth(1).unwrap_or_default();
        match size {
            Some(size) => {
                let content = after.get(..size).unwrap_or(after);
                found.push(Some((name.to_owned(), content.to_owned())));
                rest = after.get(size + 1..).unwrap_or_default();
            }
            None => {
                found.push(None);
                rest = after;
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::answers;

    #[test]
    fn each_question_has_an_answer_or_none() {
        let text = "ab blob 2\n7\n\nmain:out 7 missing\ncd commit 9\nparent x\n\n";
        let found = answers(text);
        let some = |name: &str, content: &str| Some((name.to_owned(), content.to_owned()));
        assert_eq!(found, [some("ab", "7\n"), None, some("cd", "parent x\n")]);
        assert_eq!(answers(""), []);
    }
}
