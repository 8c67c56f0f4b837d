//! What several kinds of repositories have in common: a function more, another number, a method.

use kapi_git::land::source::ApplyMethod;

use super::project::{Files, Workbench, check_path, replace};

/// Returns a method for a source, any of them.
pub(super) fn method(bench: &mut Workbench) -> ApplyMethod {
    match bench.random.between(0, 3) {
        0 => ApplyMethod::Rebase,
        1 => ApplyMethod::CherryPick,
        _ => ApplyMethod::Merge,
    }
}

/// Returns the files of a source that adds a function with its check in a slot of its own.
pub(super) fn addition(
    bench: &mut Workbench,
    base: &Files,
    slot: usize,
) -> anyhow::Result<(Files, String)> {
    let mut files = base.clone();
    let function = bench.function(None);
    bench.put(&mut files, &function, slot)?;
    bench.add_check(&mut files, &function);
    Ok((files, function.comment))
}

/// Gives the second function of ours another number, in its check, too.
pub(super) fn renumber(bench: &mut Workbench, files: &mut Files) -> anyhow::Result<()> {
    let language = bench.project.language;
    let mut function = bench.functions[1].clone();
    let before = language.value_line(function.value);
    function.value = bench.random.between(10_000, 99_999);
    let after = language.value_line(function.value);
    replace(bench.code(files)?, &before, &after)?;
    files.remove(&check_path(&function));
    Ok(())
}
