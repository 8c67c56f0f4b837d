//! The person's own editor, at their terminal, on a draft that is gone when it is closed.
//!
//! What the text is for is the caller's affair.

use std::ffi::OsString;
use std::fs;
use std::path::Path;

use kapi_store::layout::HomeLayout;
use kapi_sys::disk::{create_dir_durably, replace_durably};
use kapi_sys::process::ProcessEnd;

use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::persons_program;

/// Bytes of a draft that are read at most.
const DRAFT_BYTES_MAX: u64 = 64 * 1024;
/// Runs the person's words with the terminal as its standard streams and the draft as its argument.
const START: &str = "terminal=$1 draft=$2; exec $3 \"$draft\" < \"$terminal\" > \"$terminal\" 2>&1";

/// Opens the editor on a form and returns what was written, without the lines that begin with `#`.
pub(crate) fn edited(context: &Context, form: &str) -> Result<String, Error> {
    let words = ["VISUAL", "EDITOR"].into_iter().find_map(|name| {
        context
            .variable(name)
            .filter(|text| !text.trim().is_empty())
    });
    let Some(words) = words else {
        return Err(Error::usage("no text was given, and no editor is set")
            .with_hint("give the text on the command line, or set EDITOR."));
    };
    let dir = HomeLayout::new(&context.home).state_dir().join("drafts");
    create_dir_durably(&context.disk, &context.home, &dir)
        .map_err(|error| Error::failed(&error))?;
    let draft = dir.join(format!("{}.md", std::process::id()));
    replace_durably(&context.disk, &draft, form.as_bytes())
        .map_err(|error| Error::failed(&error))?;
    let written = open(context, words, &draft).and_then(|()| read(&draft));
    // A draft that stays behind is only a few lines of text.
    drop(fs::remove_file(&draft));
    written
}

fn open(context: &Context, words: &str, draft: &Path) -> Result<(), Error> {
    let terminal = persons_program::terminal()
        .ok_or_else(|| Error::usage("there is no terminal to open an editor on"))?;
    let args = [
        terminal.into_os_string(),
        draft.as_os_str().to_owned(),
        OsString::from(words),
    ];
    let end = persons_program::run(context, START, args).map_err(|error| Error::failed(&error))?;
    if end == ProcessEnd::Exited(0) {
        return Ok(());
    }
    let text = format!("the editor `{words}` ended with {end:?}");
    Err(Error::new(Exit::Failed, text).with_hint("nothing was recorded; try again."))
}

fn read(draft: &Path) -> Result<String, Error> {
    let failed = |error: std::io::Error| {
        Error::new(
            Exit::Failed,
            format!("failed to read {}: {error}", draft.display()),
        )
    };
    if fs::metadata(draft).map_err(failed)?.len() > DRAFT_BYTES_MAX {
        return Err(Error::usage(format!(
            "the text is longer than {} KiB",
            DRAFT_BYTES_MAX / 1024
        )));
    }
    let bytes = fs::read(draft).map_err(failed)?;
    let text = String::from_utf8(bytes).map_err(|_| Error::usage("the text is not UTF-8"))?;
    Ok(without_remarks(&text))
}

fn without_remarks(text: &str) -> String {
    let kept: Vec<&str> = text.lines().filter(|line| !line.starts_with('#')).collect();
    kept.join("\n").trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::without_remarks;

    #[test]
    fn remarks_are_left_out_and_lines_kept() {
        let text = "\nfirst\n\n  second # and more\n# a remark\nthird\n";
        assert_eq!(without_remarks(text), "first\n\n  second # and more\nthird");
        assert_eq!(without_remarks("# only\n#remarks\n\n"), "");
    }
}
