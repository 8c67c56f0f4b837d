//! The kinds of repositories that fit, or that do not and say so: each made from a workbench.
//!
//! What is true of each is known because it is made so.

use kapi_git::land::source::ApplyMethod;

use super::case::{CaseDraft, FileText, Truth};
use super::edits::{addition, method, renumber};
use super::faults;
use super::project::{Files, PROSE, Workbench, replace};

/// A kind of repository.
pub(super) struct CaseKind {
    /// What it is called in tables.
    pub(super) name: &'static str,
    /// How one is made.
    pub(super) make: fn(&mut Workbench) -> anyhow::Result<CaseDraft>,
}

const fn kind(
    name: &'static str,
    make: fn(&mut Workbench) -> anyhow::Result<CaseDraft>,
) -> CaseKind {
    CaseKind { name, make }
}

/// Every kind.
pub(super) const KINDS: [CaseKind; 20] = [
    kind("clean", clean),
    kind("clean: rename against edit", rename_and_edit),
    kind("clean: the same change twice", shared),
    kind("clean: a check fails before", failing_before),
    kind("clean: changelog", changelog),
    kind("clean: generated lock file", lock_file),
    kind("clean: Cargo.lock", cargo_lock),
    kind("conflict: same lines", conflict),
    kind("conflict: delete against edit", delete_and_edit),
    kind("conflict: binary", binary),
    kind("fails: alone on the new dev", faults::alone),
    kind("fails: two that are right alone", faults::pair),
    kind("fails: three that fit in pairs", faults::triple),
    kind("lost: one side taken wholesale", faults::lost),
    kind("lost: dev's lines", faults::lost_of_dev),
    kind("lost: by a later hand", faults::lost_later),
    kind("lost: taken back on dev before", faults::taken_back),
    kind("lost: test dropped in a source's merge", faults::evil_merge),
    kind("twice: the same function from two", faults::duplicated),
    kind("unasked: lines or markers of nobody", faults::unasked),
];

fn holds(path: &str, text: &str) -> FileText {
    FileText {
        path: path.to_owned(),
        text: text.to_owned(),
    }
}

/// Two to four sources in places of their own, on a `dev` that may have moved.
fn clean(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let base = bench.project.files.clone();
    let code = bench.project.code.clone();
    let mut draft = CaseDraft::new(base.clone());
    let mut texts = Vec::new();
    let n_sources = bench.random.between(2, 4);
    for slot in (0..).take(usize::try_from(n_sources)?) {
        let (mut files, comment) = addition(bench, &base, slot)?;
        let line = format!("\n{}. The", 3 + slot * 6);
        let sentence = bench.sentence();
        if let Some(prose) = files.get_mut(PROSE) {
            replace(prose, &line, &format!("\n{sentence}{}", line.trim_start()))?;
        }
        texts.push(holds(&code, &comment));
        texts.push(holds(PROSE, &sentence));
        let method = method(bench);
        draft.source(files, method);
    }
    if bench.random.chance(60) {
        let (files, comment) = addition(bench, &base, 5)?;
        texts.push(holds(&code, &comment));
        draft.move_dev(files);
    }
    draft.truth = Truth::Clean { holds: texts };
    Ok(draft)
}

/// One moves the prose, another edits it.
fn rename_and_edit(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let base = bench.project.files.clone();
    let mut draft = CaseDraft::new(base.clone());
    let (mut moved, _) = addition(bench, &base, 0)?;
    let target = format!("manual/{}.txt", bench.name());
    if let Some(prose) = moved.remove(PROSE) {
        moved.insert(target.clone(), prose);
    }
    let (mut edited, _) = addition(bench, &base, 2)?;
    let sentence = bench.sentence();
    if let Some(prose) = edited.get_mut(PROSE) {
        replace(prose, "\n17. The", &format!("\n{sentence}17. The"))?;
    }
    let mut both = [moved, edited];
    if bench.random.chance(50) {
        both.reverse();
    }
    for files in both {
        draft.source(files, ApplyMethod::Merge);
    }
    draft.truth = Truth::Clean {
        holds: vec![holds(&target, &sentence)],
    };
    Ok(draft)
}

/// Two make the same change in the same place, and something of their own.
fn shared(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let base = bench.project.files.clone();
    let mut draft = CaseDraft::new(base.clone());
    let sentence = bench.sentence();
    for slot in [1, 3] {
        let (mut files, _) = addition(bench, &base, slot)?;
        if let Some(prose) = files.get_mut(PROSE) {
            replace(prose, "\n9. The", &format!("\n{sentence}9. The"))?;
        }
        draft.source(files, ApplyMethod::Merge);
    }
    draft.truth = Truth::Clean {
        holds: vec![holds(PROSE, &sentence)],
    };
    Ok(draft)
}

/// A check of `dev` fails already, which blames nobody.
fn failing_before(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let mut base = bench.project.files.clone();
    let name = format!("checks/{}.sh", bench.name());
    base.insert(name, "exit 1\n".to_owned());
    let mut draft = CaseDraft::new(base.clone());
    for slot in [0, 2, 4] {
        let (files, _) = addition(bench, &base, slot)?;
        let method = method(bench);
        draft.source(files, method);
    }
    Ok(draft)
}

/// Each source has an entry at the top of the changelog.
fn changelog(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    const LOG: &str = "CHANGELOG.md";
    let mut base = bench.project.files.clone();
    let log = "# Changelog\n\n- The first version.\n".to_owned();
    base.insert(LOG.to_owned(), log);
    let mut draft = CaseDraft::new(base.clone());
    let mut texts = Vec::new();
    for slot in [0, 2, 4] {
        let (mut files, _) = addition(bench, &base, slot)?;
        let entry = format!("- {}", bench.sentence());
        if let Some(log) = files.get_mut(LOG) {
            replace(log, "\n\n- The", &format!("\n\n{entry}- The"))?;
        }
        texts.push(holds(LOG, &entry));
        draft.source(files, ApplyMethod::Merge);
    }
    draft.truth = Truth::Clean { holds: texts };
    Ok(draft)
}

/// Each source adds a dependency, and a script of the project writes the lock file.
fn lock_file(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    const TOOL: &str = "set -e\nLC_ALL=C; export LC_ALL\ncat deps/*.dep | sort > lock.new\n\
        { echo \"total $(wc -l < lock.new)\"; cat lock.new; } > deps.lock\nrm -f lock.new\n";
    let mut base = bench.project.files.clone();
    base.insert("tools/lock.sh".to_owned(), TOOL.to_owned());
    base.insert("deps/first.dep".to_owned(), "first 1.0\n".to_owned());
    base.insert("deps.lock".to_owned(), "total 1\nfirst 1.0\n".to_owned());
    let in_step = "cp deps.lock before\nsh tools/lock.sh\ncmp before deps.lock\n".to_owned();
    base.insert("checks/lock.sh".to_owned(), in_step);
    let mut draft = CaseDraft::new(base.clone());
    let mut texts = Vec::new();
    for slot in [0, 3] {
        let (mut files, _) = addition(bench, &base, slot)?;
        let name = bench.name();
        let entry = format!("{name} {}.0\n", bench.random.between(1, 9));
        files.insert(format!("deps/{name}.dep"), entry.clone());
        let mut all = [entry.as_str(), "first 1.0\n"];
        all.sort_unstable();
        files.insert("deps.lock".to_owned(), format!("total 2\n{}", all.concat()));
        texts.push(holds("deps.lock", &entry));
        draft.source(files, ApplyMethod::Merge);
    }
    draft.rules = vec!["deps.lock: regenerate: sh tools/lock.sh".to_owned()];
    texts.push(holds("deps.lock", "total 3\n"));
    draft.truth = Truth::Clean { holds: texts };
    Ok(draft)
}

/// Each source adds a crate to a workspace, whose lock file Cargo writes.
fn cargo_lock(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let member = |files: &mut Files, name: &str| {
        let manifest =
            format!("[package]\nname = \"{name}\"\nversion = \"0.1.0\"\nedition = \"2021\"\n");
        files.insert(format!("members/{name}/Cargo.toml"), manifest);
        files.insert(format!("members/{name}/src/lib.rs"), String::new());
    };
    let lock = |names: &[&str]| {
        let mut sorted = names.to_vec();
        sorted.sort_unstable();
        let entries = sorted
            .iter()
            .map(|name| format!("\n[[package]]\nname = \"{name}\"\nversion = \"0.1.0\"\n"));
        format!(
            "# This file is automatically @generated by Cargo.\n# It is not intended for manual \
             editing.\nversion = 4\n{}",
            entries.collect::<String>()
        )
    };
    let mut base = bench.project.files.clone();
    base.retain(|path, _| path != "Cargo.toml" && path != "Cargo.lock");
    let manifest = "[workspace]\nresolver = \"2\"\nmembers = [\"members/*\"]\n".to_owned();
    base.insert("Cargo.toml".to_owned(), manifest);
    member(&mut base, "aa_first");
    base.insert("Cargo.lock".to_owned(), lock(&["aa_first"]));
    let check = "cargo tree --workspace --locked --offline\n".to_owned();
    base.insert("checks/lock.sh".to_owned(), check);
    let mut draft = CaseDraft::new(base.clone());
    let mut texts = Vec::new();
    for slot in [0, 3] {
        let (mut files, _) = addition(bench, &base, slot)?;
        let name = bench.name();
        member(&mut files, &name);
        files.insert("Cargo.lock".to_owned(), lock(&["aa_first", &name]));
        texts.push(holds("Cargo.lock", &format!("name = \"{name}\"")));
        draft.source(files, ApplyMethod::Merge);
    }
    draft.truth = Truth::Clean { holds: texts };
    Ok(draft)
}

/// Two give another number to the same function.
fn conflict(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let base = bench.project.files.clone();
    let mut draft = CaseDraft::new(base.clone());
    for slot in [0, 4] {
        let (mut files, _) = addition(bench, &base, slot)?;
        renumber(bench, &mut files)?;
        let method = method(bench);
        draft.source(files, method);
    }
    let path = bench.project.code.clone();
    draft.truth = Truth::Conflict { path };
    Ok(draft)
}

/// One deletes the prose, another edits it.
fn delete_and_edit(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let base = bench.project.files.clone();
    let mut draft = CaseDraft::new(base.clone());
    let (mut gone, _) = addition(bench, &base, 0)?;
    gone.remove(PROSE);
    let (mut edited, _) = addition(bench, &base, 3)?;
    let sentence = bench.sentence();
    if let Some(prose) = edited.get_mut(PROSE) {
        replace(prose, "\n12. The", &format!("\n{sentence}12. The"))?;
    }
    let mut both = [gone, edited];
    if bench.random.chance(50) {
        both.reverse();
    }
    for files in both {
        let method = method(bench);
        draft.source(files, method);
    }
    draft.truth = Truth::Conflict {
        path: PROSE.to_owned(),
    };
    Ok(draft)
}

/// Two change a file that is no text.
fn binary(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    const IMAGE: &str = "assets/image.bin";
    let mut base = bench.project.files.clone();
    base.insert(IMAGE.to_owned(), "\0image\0".to_owned());
    let mut draft = CaseDraft::new(base.clone());
    for slot in [0, 3] {
        let (mut files, _) = addition(bench, &base, slot)?;
        files.insert(IMAGE.to_owned(), format!("\0image {}\0", bench.name()));
        let method = method(bench);
        draft.source(files, method);
    }
    draft.truth = Truth::Conflict {
        path: IMAGE.to_owned(),
    };
    Ok(draft)
}
