//! Cutting a Markdown file into its front matter and its body.
//!
//! Knows nothing of what stands in either.

use std::borrow::Cow;

/// The longest front matter in bytes.
const FRONT_BYTES_MAX: usize = 64 * 1024;

/// A file that was cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::record) struct FileParts {
    /// The YAML, with an empty line for the fence before it: its lines are those of the file.
    pub(in crate::record) front: String,
    /// What follows, without blank lines around it.
    pub(in crate::record) body: String,
    /// The line of the file that the body begins on.
    pub(in crate::record) body_line: usize,
}

/// A file that cannot be cut, and what to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::record) struct FrontMatterError {
    /// The line.
    pub(in crate::record) line: usize,
    /// What is wrong.
    pub(in crate::record) what: &'static str,
    /// What to do.
    pub(in crate::record) remedy: &'static str,
}

/// Cuts a file: a line of three dashes, YAML, another such line, and the body.
pub(in crate::record) fn cut(text: &str) -> Result<FileParts, FrontMatterError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let text = match text.contains('\r') {
        true => Cow::Owned(text.replace("\r\n", "\n")),
        false => Cow::Borrowed(text),
    };
    let mut lines = text.split_inclusive('\n');
    if !lines.next().is_some_and(is_fence) {
        return Err(FrontMatterError {
            line: 1,
            what: "missing front matter",
            remedy: "start the file with a line of three dashes, the settings, and another line \
                of three dashes",
        });
    }
    let mut front = "\n".to_owned();
    let mut n_lines = 1;
    let mut is_closed = false;
    for line in lines.by_ref() {
        n_lines += 1;
        is_closed = is_fence(line);
        if is_closed {
            break;
        }
        front.push_str(line);
    }
    if !is_closed {
        return Err(FrontMatterError {
            line: 1,
            what: "the front matter is not closed",
            remedy: "close it with a line of three dashes",
        });
    }
    if front.len() > FRONT_BYTES_MAX {
        return Err(FrontMatterError {
            line: 1,
            what: "the front matter is longer than 64 KiB",
            remedy: "move text into the body",
        });
    }
    let body: String = lines.collect();
    let n_blank = body
        .lines()
        .take_while(|line| line.trim().is_empty())
        .count();
    Ok(FileParts {
        front,
        body: body.trim().to_owned(),
        body_line: n_lines + n_blank + 1,
    })
}

fn is_fence(line: &str) -> bool {
    line.trim_end() == "---"
}

#[cfg(test)]
mod tests {
    use super::{FileParts, cut};

    #[test]
    fn the_same_file_is_cut_alike_on_every_system() {
        let text = "---\nname: a\n---\n\n\nOne\n---\nTwo\n";
        let parts = FileParts {
            front: "\nname: a\n".to_owned(),
            body: "One\n---\nTwo".to_owned(),
            body_line: 6,
        };
        assert_eq!(cut(text), Ok(parts.clone()));
        assert_eq!(cut(&text.replace('\n', "\r\n")), Ok(parts.clone()));
        assert_eq!(cut(&format!("\u{feff}{text}")), Ok(parts));
    }

    #[test]
    fn a_file_without_both_fences_is_refused() {
        let what = |text: &str| cut(text).unwrap_err().what;
        for text in [
            "",
            "name: a\n",
            " ---\na: 1\n---\n",
            "----\n---\n",
            "\n---\n---\n",
        ] {
            assert_eq!(what(text), "missing front matter", "{text:?}");
        }
        for text in ["---", "---\n", "---\nname: a\n", "---\nname: a\n--- x\n"] {
            assert_eq!(what(text), "the front matter is not closed", "{text:?}");
        }
        let long = format!("---\n# {}\n---\n", "x".repeat(70_000));
        assert_eq!(what(&long), "the front matter is longer than 64 KiB");
    }

    #[test]
    fn a_body_may_be_missing() {
        for text in ["---\n---", "---\n---\n", "---\n---\n \n\n"] {
            assert_eq!(cut(text).unwrap().body, "", "{text:?}");
        }
    }
}
