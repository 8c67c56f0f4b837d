//! Lists of members in notations that are programs or settings: looked for word by word.
//!
//! What is only known when such a program runs stands for any directory, so that nothing is told to be
//! left out which may be taken in.

use crate::rules::checks::directory::{MemberList, WorkspaceNotation};

/// How many members of one file are read.
const MEMBERS_MAX: usize = 5_000;
/// Variables of CMake that stand for the directory of the file.
const CMAKE_HERE: [&str; 2] = ["${CMAKE_CURRENT_SOURCE_DIR}/", "${CMAKE_CURRENT_LIST_DIR}/"];

/// Reads a `go.work`.
pub(super) fn go_work(text: &str) -> MemberList {
    let mut members = Vec::new();
    let mut is_in_block = false;
    for line in text.lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        let path = match line.strip_prefix("use") {
            _ if is_in_block && line == ")" => {
                is_in_block = false;
                continue;
            }
            _ if is_in_block => line,
            Some(rest) if rest.trim() == "(" => {
                is_in_block = true;
                continue;
            }
            Some(rest) if rest.starts_with([' ', '\t']) => rest.trim(),
            Some(_) | None => continue,
        };
        members.push(path.trim_matches(['"', '`']).to_owned());
    }
    members.retain(|member| !member.is_empty());
    list(WorkspaceNotation::Go, members)
}

/// Reads a `settings.gradle`: a path with colons stands for its directories, and each of those above is
/// a project as well.
pub(super) fn gradle(text: &str) -> MemberList {
    let text = without_comments(text);
    let mut members = vec!["buildSrc".to_owned()];
    for arguments in calls(&text, "include") {
        let Some(paths) = literals(arguments) else {
            members.push("**".to_owned());
            continue;
        };
        for path in paths {
            let path = without_variables(&path);
            let names: Vec<&str> = path.split(':').filter(|name| !name.is_empty()).collect();
            members.extend((1..=names.len()).filter_map(|end| Some(names.get(..end)?.join("/"))));
        }
    }
    for line in text.lines() {
        let Some((_, after)) = line.split_once("projectDir") else {
            continue;
        };
        let places = after.split(['"', '\'']).skip(1).step_by(2);
        let places: Vec<String> = places.map(place).collect();
        let is_known = !places.is_empty() || !after.contains('=');
        members.extend(places);
        members.extend((!is_known).then(|| "/**".to_owned()));
    }
    list(WorkspaceNotation::Gradle, members)
}

/// Reads a `.sln` or `.slnx`: whatever stands in quotes and is the file of a project.
pub(super) fn solution(text: &str) -> MemberList {
    let quoted = text.split('"').skip(1).step_by(2);
    let projects = quoted.filter(|path| path.ends_with("proj"));
    let directories = projects.filter_map(|path| {
        let path = path.replace('\\', "/");
        Some(path.rsplit_once('/')?.0.to_owned())
    });
    list(WorkspaceNotation::Solution, directories.collect())
}

/// Reads a `CMakeLists.txt`: `add_subdirectory`, and what projects name like it.
pub(super) fn cmake(text: &str) -> MemberList {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    let text = lines.collect::<Vec<&str>>().join("\n");
    let mut members = Vec::new();
    let mut rest = text.as_str();
    while let Some((before, after)) = rest.split_once('(') {
        rest = after;
        let name = before.split_whitespace().next_back().unwrap_or_default();
        let name = name.to_lowercase();
        if !name.contains("subdirector") {
            continue;
        }
        let arguments = after.split(')').next().unwrap_or_default();
        let arguments = arguments.split_whitespace();
        let n_places = if name == "add_subdirectory" {
            1
        } else {
            MEMBERS_MAX
        };
        members.extend(arguments.take(n_places).map(|argument| {
            let argument = argument.trim_matches('"');
            let here = CMAKE_HERE
                .iter()
                .find_map(|here| argument.strip_prefix(here));
            place(here.unwrap_or(argument))
        }));
    }
    list(WorkspaceNotation::Cmake, members)
}

/// Reads a `meson.build`: `subdir`; each of its subprojects is built by the top.
pub(super) fn meson(text: &str) -> MemberList {
    let lines = text
        .lines()
        .map(|line| line.split('#').next().unwrap_or_default());
    let text = lines.collect::<Vec<&str>>().join("\n");
    let mut members = vec!["subprojects/*".to_owned()];
    for arguments in calls(&text, "subdir") {
        if arguments.trim_start().starts_with('(') {
            let paths = literals(arguments).filter(|paths| !paths.concat().contains('@'));
            members.extend(paths.unwrap_or_else(|| vec!["**".to_owned()]));
        }
    }
    list(WorkspaceNotation::Meson, members)
}

/// Reads a `rebar.config`: where applications lie, if it is not where they usually do.
pub(super) fn rebar(text: &str) -> MemberList {
    let usual = || vec!["apps/*".to_owned(), "lib/*".to_owned()];
    let named = text.split_once("project_app_dirs").map(|(_, after)| {
        let inner = after.split(']').next().unwrap_or_default();
        let quoted = inner.split('"').skip(1).step_by(2);
        quoted.map(str::to_owned).collect()
    });
    list(WorkspaceNotation::Rebar, named.unwrap_or_else(usual))
}

/// Reads `testpaths` in a section of an INI file.
pub(super) fn pytest_of_ini(text: &str, section: &str) -> Option<MemberList> {
    let head = format!("[{section}]");
    let lines = text.lines().skip_while(|line| line.trim() != head).skip(1);
    let lines: Vec<&str> = lines.take_while(|line| !line.starts_with('[')).collect();
    let is_key = |line: &&str| {
        line.strip_prefix("testpaths")
            .is_some_and(|rest| rest.trim_start().starts_with(['=', ':']))
    };
    let at = lines.iter().position(is_key)?;
    let mut all = lines.iter().skip(at);
    let (_, first) = all.next()?.split_once(['=', ':'])?;
    let more = all.take_while(|line| line.starts_with([' ', '\t']));
    let paths = first.split_whitespace();
    Some(test_paths(
        paths.chain(more.flat_map(|line| line.split_whitespace())),
    ))
}

/// Returns where pytest looks: in each place and everything below it.
pub(super) fn test_paths<'a>(paths: impl Iterator<Item = &'a str>) -> MemberList {
    let members = paths.flat_map(|path| match path.trim_end_matches('/') {
        "." => vec!["**".to_owned()],
        path => vec![path.to_owned(), format!("{path}/**")],
    });
    list(WorkspaceNotation::Pytest, members.collect())
}

fn list(workspace: WorkspaceNotation, mut members: Vec<String>) -> MemberList {
    members.truncate(MEMBERS_MAX);
    MemberList {
        workspace,
        members,
        excluded: Vec::new(),
    }
}

/// Returns a path as a pattern: up to the last variable in it, it may be any directory, which lies
/// below this one where nothing follows.
fn place(path: &str) -> String {
    let Some((_, variable)) = path.rsplit_once('$') else {
        return path.to_owned();
    };
    let end = variable.find('/').unwrap_or(variable.len());
    match variable.split_at(end) {
        (_, "") => "**".to_owned(),
        (_, below) => format!("/**{below}"),
    }
}

/// Puts a star for each variable in a text of Gradle: `$name` and `${…}`.
fn without_variables(text: &str) -> String {
    let mut parts = text.split('$');
    let mut plain = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
        let after = match part.strip_prefix('{') {
            Some(braced) => braced.split_once('}').map_or("", |(_, after)| after),
            None => part.trim_start_matches(is_name),
        };
        plain.push('*');
        plain.push_str(after);
    }
    plain
}

/// Returns what follows each place where a word stands alone.
fn calls<'a>(text: &'a str, word: &'a str) -> impl Iterator<Item = &'a str> {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(word).filter_map(move |(at, _)| {
        let before = text.get(..at)?;
        let after = text.get(at + word.len()..)?;
        (!before.ends_with(is_part) && !after.starts_with(is_part)).then_some(after)
    })
}

/// Returns the texts in quotes that a call is given; `None` where one of them is not written out.
fn literals(arguments: &str) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut rest = arguments.trim_start();
    rest = rest.strip_prefix('(').unwrap_or(rest).trim_start();
    loop {
        let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''));
        let Some(quote) = quote else {
            // A comma may end a list in brackets.
            return (rest.starts_with(')') && !found.is_empty()).then_some(found);
        };
        let (text, after) = rest.strip_prefix(quote)?.split_once(quote)?;
        found.push(text.to_owned());
        match after.trim_start().strip_prefix(',') {
            Some(next) if found.len() < MEMBERS_MAX => rest = next.trim_start(),
            Some(_) | None => return Some(found),
        }
    }
}

/// Takes comments out of a program of Gradle; two slashes within a word are none.
fn without_comments(text: &str) -> String {
    let mut parts = text.split("/*");
    let first = parts.next().unwrap_or_default();
    let rest = parts.map(|part| part.split_once("*/").map_or(part, |(_, after)| after));
    let text: String = [first].into_iter().chain(rest).collect();
    let plain = |line: &str| match line.find("//") {
        Some(at) if line.get(..at).is_some_and(|before| !before.ends_with(':')) => {
            line.get(..at).unwrap_or_default().to_owned()
        }
        Some(_) | None => line.to_owned(),
    };
    text.lines().map(plain).collect::<Vec<String>>().join("\n")
}
