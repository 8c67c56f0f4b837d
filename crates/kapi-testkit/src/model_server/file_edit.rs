//! File changes for clients that have no file tools: as a patch text, or as a
//! command for a POSIX shell.
//! It does not know which client needs which.

/// Returns the patch that adds a file, or nothing where a patch cannot say it exactly.
///
/// A patch consists of whole lines: content without a final newline is not one.
pub(crate) fn write_patch(path: &str, content: &str) -> Option<String> {
    let lines = content.strip_suffix('\n')?;
    let body = prefixed('+', lines);
    Some(format!(
        "*** Begin Patch\n*** Add File: {path}\n{body}*** End Patch\n"
    ))
}

/// Returns the patch that replaces whole lines.
pub(crate) fn edit_patch(path: &str, old: &str, new: &str) -> String {
    let removed = prefixed('-', old.trim_end_matches('\n'));
    let added = prefixed('+', new.trim_end_matches('\n'));
    format!("*** Begin Patch\n*** Update File: {path}\n@@\n{removed}{added}*** End Patch\n")
}

/// Returns the command that writes a file.
pub(crate) fn write_command(path: &str, content: &str) -> String {
    let path = quoted(path);
    let content = quoted(content);
    format!("mkdir -p \"$(dirname {path})\" && printf %s {content} > {path}")
}

/// Returns the command that replaces the first occurrence, and fails where there is none.
pub(crate) fn edit_command(path: &str, old: &str, new: &str) -> String {
    // A substitution drops final newlines, hence the letter that is added and taken away.
    format!(
        "f={}; o={}; n={}; s=$(cat \"$f\" && printf x) || exit 1; s=${{s%x}}; \
         case $s in *\"$o\"*) printf %s \"${{s%%\"$o\"*}}$n${{s#*\"$o\"}}\" > \"$f\";; \
         *) echo 'the old text is not in the file' >&2; exit 1;; esac",
        quoted(path),
        quoted(old),
        quoted(new)
    )
}

/// Returns the command that prints a file.
pub(crate) fn read_command(path: &str) -> String {
    format!("cat {}", quoted(path))
}

fn prefixed(prefix: char, lines: &str) -> String {
    lines
        .split('\n')
        .map(|line| format!("{prefix}{line}\n"))
        .collect()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "'\\''"))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use super::{edit_command, edit_patch, read_command, write_command, write_patch};

    #[expect(clippy::disallowed_methods, reason = "the commands are for any shell")]
    fn shell(folder: &Path, command: &str) -> (bool, String) {
        let output = std::process::Command::new("sh")
            .args(["-c", command])
            .current_dir(folder)
            .output()
            .expect("a shell");
        let text = String::from_utf8(output.stdout).expect("text");
        (output.status.success(), text)
    }

    #[test]
    fn commands_change_files_to_the_byte() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = "sub folder/it's.txt";
        let check = |command: &str, works: bool, expected: &str| {
            assert_eq!(shell(folder.path(), command).0, works, "{command}");
            let content = fs::read_to_string(folder.path().join(path)).expect("a file");
            assert_eq!(content, expected, "{command}");
        };
        let content = "a '*' $HOME `x` 50% \\n\ntwo\ntwo\n\n";
        check(&write_command(path, content), true, content);
        let (_, read) = shell(folder.path(), &read_command(path));
        assert_eq!(read, content);
        let edited = content.replacen("two", "2 \"*\" '", 1);
        check(&edit_command(path, "two", "2 \"*\" '"), true, &edited);
        check(&edit_command(path, "two*", "no"), false, &edited);
        check(&write_command(path, "no newline"), true, "no newline");
        check(&write_command(path, ""), true, "");
    }

    #[test]
    fn patches_are_whole_lines() {
        let added = "*** Begin Patch\n*** Add File: a\n+x\n+\n+y\n*** End Patch\n";
        assert_eq!(write_patch("a", "x\n\ny\n").as_deref(), Some(added));
        assert_eq!(write_patch("a", "x\ny"), None);
        assert_eq!(write_patch("a", ""), None);
        let edited = "*** Begin Patch\n*** Update File: a\n@@\n-x\n+y\n+z\n*** End Patch\n";
        assert_eq!(edit_patch("a", "x\n", "y\nz\n"), edited);
    }
}
