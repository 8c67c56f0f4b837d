//! Scripts that a command names: they are checks, and protected by themselves.
//!
//! One rule for every way in: flags, contract files, drafts, proposals, workflows, tasks and loops.
//! Whether a name is a file is the caller's to look up.

/// Returns everything in a command that could be a path inside the repository.
///
/// Whatever a shell would make of its quotes, operators and subshells, the name of a file stands in
/// it as it is; a word after `cd` is tried as the directory of the others, too.
#[must_use]
pub fn paths_in(command: &str) -> Vec<String> {
    let plain = command.replace("$PWD/", "").replace("${PWD}/", "");
    let is_separator = |c: char| c.is_whitespace() || "\"'`;|&()<>{}=,$".contains(c);
    let words: Vec<&str> = plain
        .split(is_separator)
        .filter(|word| !word.is_empty())
        .collect();
    let after_cd = words.windows(2).filter_map(|pair| match pair {
        ["cd", dir] => Some(dir.trim_start_matches("./").trim_end_matches('/')),
        _ => None,
    });
    let dirs: Vec<&str> = after_cd.collect();
    let mut paths = Vec::new();
    for name in words.iter().filter_map(|word| plain_path(word)) {
        paths.push(name.to_owned());
        paths.extend(dirs.iter().map(|dir| format!("{dir}/{name}")));
    }
    paths
}

/// Tells whether a file that a command names is a check, and not what is checked: code whose name
/// says so.
#[must_use]
pub fn is_check(path: &str) -> bool {
    const DATA: &[&str] = &[
        "txt", "md", "json", "yaml", "yml", "toml", "csv", "log", "html",
    ];
    const SIGNS: &[&str] = &["test", "spec", "check", "verify"];
    let name = path.rsplit('/').next().unwrap_or(path).to_lowercase();
    let extension = name.rsplit_once('.').map_or("", |(_, extension)| extension);
    !DATA.contains(&extension) && SIGNS.iter().any(|sign| name.contains(sign))
}

/// Returns a word as a path inside the repository, if it can be one.
fn plain_path(word: &str) -> Option<&str> {
    let name = word.strip_prefix("./").unwrap_or(word);
    let is_plain = !name.is_empty() && !name.contains(['*', '?', '[', '\\']);
    let is_inside = !name.starts_with(['/', '-']) && !name.split('/').any(|part| part == "..");
    (is_plain && is_inside).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::{is_check, paths_in};

    #[test]
    fn a_file_is_found_however_the_shell_is_written() {
        for command in [
            "sh test.sh",
            "sh test.sh;true",
            "(sh ./test.sh)",
            "bash -c 'sh test.sh'",
            "sh test.sh>/dev/null",
            "sh \"$PWD/test.sh\"",
            "X=test.sh && sh $X",
        ] {
            assert!(
                paths_in(command).contains(&"test.sh".to_owned()),
                "{command}"
            );
        }
        assert!(paths_in("cd sub && sh t.sh").contains(&"sub/t.sh".to_owned()));
        assert!(!paths_in("sh ../test.sh /test.sh").contains(&"test.sh".to_owned()));
    }

    #[test]
    fn a_check_is_code_that_says_so() {
        for check in [
            "test.sh",
            "tests/test_api.py",
            "src/a.spec.ts",
            "ci/Verify.rb",
            "check",
        ] {
            assert!(is_check(check), "{check}");
        }
        for subject in [
            "answer.txt",
            "main.py",
            "test.txt",
            "src/lib.rs",
            "tests/data.json",
        ] {
            assert!(!is_check(subject), "{subject}");
        }
    }
}
