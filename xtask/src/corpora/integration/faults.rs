//! The kinds of repositories that merge, and are wrong: in what runs, or in what is there.

use kapi_git::coverage::FindingKind;
use kapi_git::land::source::ApplyMethod;

use super::case::{CaseDraft, Hand, Settling, SourceDraft, TextChange, Truth, WrongResult};
use super::edits::{addition, method, renumber};
use super::project::{Files, PROSE, Workbench, replace};

/// `dev` renames a function of ours; a source that began before calls it by its old name.
pub(super) fn alone(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let base = bench.project.files.clone();
    let mut draft = CaseDraft::new(base.clone());
    let caller = caller(bench, &base, 2)?;
    let (other, _) = addition(bench, &base, 4)?;
    let renamed = renamed(bench, &base)?;
    for files in [other, caller] {
        let method = method(bench);
        draft.source(files, method);
    }
    draft.move_dev(renamed);
    draft.truth = Truth::Culprits { sources: vec![1] };
    Ok(draft)
}

/// One renames a function of ours, another one calls it by its old name.
pub(super) fn pair(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let base = bench.project.files.clone();
    let mut draft = CaseDraft::new(base.clone());
    let caller = caller(bench, &base, 2)?;
    let renamed = renamed(bench, &base)?;
    let mut sources = vec![caller, renamed];
    if bench.random.chance(50) {
        sources.reverse();
    }
    let (other, _) = addition(bench, &base, 4)?;
    sources.push(other);
    for files in sources {
        let method = method(bench);
        draft.source(files, method);
    }
    draft.truth = Truth::Culprits {
        sources: vec![0, 1],
    };
    Ok(draft)
}

/// A function that calls the first of ours, with a check.
fn caller(bench: &mut Workbench, base: &Files, slot: usize) -> anyhow::Result<Files> {
    let mut files = base.clone();
    let called = bench.functions[0].name.clone();
    let function = bench.function(Some(called));
    bench.put(&mut files, &function, slot)?;
    bench.add_check(&mut files, &function);
    Ok(files)
}

/// The first of our functions with another name, wherever it is used.
fn renamed(bench: &mut Workbench, base: &Files) -> anyhow::Result<Files> {
    let before = bench.functions[0].name.clone();
    let after = bench.name();
    let mut files = Files::new();
    for (path, text) in base {
        let is_ours = *path == bench.project.code || path.starts_with("checks/");
        let text = if is_ours {
            text.replace(&before, &after)
        } else {
            text.clone()
        };
        files.insert(path.replace(&before, &after), text);
    }
    Ok(files)
}

/// Three add to something of which two are enough.
pub(super) fn triple(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let mut base = bench.project.files.clone();
    let check = "[ \"$(cat weights/*.txt | wc -l)\" -le 3 ]\n".to_owned();
    base.insert("checks/weights.sh".to_owned(), check);
    base.insert("weights/first.txt".to_owned(), "1\n".to_owned());
    let mut draft = CaseDraft::new(base.clone());
    for slot in [0, 2, 4] {
        let (mut files, _) = addition(bench, &base, slot)?;
        files.insert(format!("weights/{}.txt", bench.name()), "1\n".to_owned());
        let method = method(bench);
        draft.source(files, method);
    }
    let sources = vec![0, 1, 2];
    draft.truth = Truth::Culprits { sources };
    Ok(draft)
}

/// Two sources do not fit in one line, and whoever settles it takes the head's file as a whole: what the
/// other one did elsewhere in it is gone.
pub(super) fn lost(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let base = bench.project.files.clone();
    let mut draft = CaseDraft::new(base.clone());
    let mut texts = Vec::new();
    for slot in [1, 4] {
        let mut files = base.clone();
        renumber(bench, &mut files)?;
        let function = bench.function(None);
        bench.put(&mut files, &function, slot)?;
        texts.push(function.comment);
        draft.source(files, ApplyMethod::Merge);
    }
    draft.hand.settles = Some(Settling::Ours);
    draft.truth = Truth::Wrong(WrongResult {
        kinds: &[FindingKind::Missed],
        path: bench.project.code.clone(),
        texts,
    });
    Ok(draft)
}

/// A source does not fit `dev`, and whoever settles it takes the source's file as a whole.
pub(super) fn lost_of_dev(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let base = bench.project.files.clone();
    let mut draft = CaseDraft::new(base.clone());
    let mut files = base.clone();
    renumber(bench, &mut files)?;
    draft.source(files, ApplyMethod::Merge);
    let mut moved = base.clone();
    renumber(bench, &mut moved)?;
    let function = bench.function(None);
    bench.put(&mut moved, &function, 5)?;
    draft.move_dev(moved);
    draft.hand.settles = Some(Settling::Theirs);
    draft.truth = Truth::Wrong(WrongResult {
        kinds: &[FindingKind::Reverted],
        path: bench.project.code.clone(),
        texts: vec![function.comment],
    });
    Ok(draft)
}

/// Somebody tidies up the result, and takes out what a source brought.
pub(super) fn lost_later(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let base = bench.project.files.clone();
    let mut draft = CaseDraft::new(base.clone());
    let mut lost = String::new();
    for slot in [1, 4] {
        let (mut files, _) = addition(bench, &base, slot)?;
        lost = bench.sentence();
        let line = format!("\n{}. The", 5 + slot * 4);
        if let Some(prose) = files.get_mut(PROSE) {
            replace(prose, &line, &format!("\n{lost}{}", line.trim_start()))?;
        }
        let method = method(bench);
        draft.source(files, method);
    }
    draft.hand = Hand {
        settles: None,
        afterwards: Some(TextChange {
            path: PROSE.to_owned(),
            from: lost.clone(),
            to: String::new(),
        }),
    };
    draft.truth = Truth::Wrong(WrongResult {
        kinds: &[FindingKind::Missed, FindingKind::Reverted],
        path: PROSE.to_owned(),
        texts: vec![lost],
    });
    Ok(draft)
}

/// `dev` had merged the beginning of a source and took it back; a merge of the rest brings it no more.
pub(super) fn taken_back(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let base = bench.project.files.clone();
    let mut draft = CaseDraft::new(base.clone());
    let mut begun = base.clone();
    let function = bench.function(None);
    bench.put(&mut begun, &function, 2)?;
    let first = draft.commit(&[0], begun.clone());
    let merged = draft.commit(&[0, first], begun.clone());
    draft.dev = draft.commit(&[merged], base.clone());
    let sentence = bench.sentence();
    let mut rest = begun;
    if let Some(prose) = rest.get_mut(PROSE) {
        replace(prose, "\n20. The", &format!("\n{sentence}20. The"))?;
    }
    let tip = draft.commit(&[first], rest);
    draft.sources.push(SourceDraft {
        base: 0,
        tip,
        method: ApplyMethod::Merge,
    });
    draft.truth = Truth::Wrong(WrongResult {
        kinds: &[FindingKind::Missed],
        path: bench.project.code.clone(),
        texts: vec![function.comment],
    });
    Ok(draft)
}

/// A source merges `dev` into itself, and its merge drops a check of `dev`.
pub(super) fn evil_merge(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let base = bench.project.files.clone();
    let mut draft = CaseDraft::new(base.clone());
    let (moved, _) = addition(bench, &base, 5)?;
    let check = moved
        .keys()
        .find(|path| !base.contains_key(*path))
        .cloned()
        .unwrap_or_default();
    let text = moved.get(&check).cloned().unwrap_or_default();
    draft.move_dev(moved.clone());
    let (own, _) = addition(bench, &base, 1)?;
    let own_tip = draft.commit(&[0], own.clone());
    // What git makes of both, made by hand: each has a place of its own.
    let mut both = moved.clone();
    for (path, text) in &own {
        if *path != bench.project.code {
            both.insert(path.clone(), text.clone());
        }
    }
    let code = bench.project.code.clone();
    let joined = joined(&base[&code], &own[&code], &moved[&code]);
    both.insert(code, joined);
    both.remove(&check);
    let tip = draft.commit(&[own_tip, draft.dev], both);
    draft.sources.push(SourceDraft {
        base: 0,
        tip,
        method: ApplyMethod::Merge,
    });
    let (other, _) = addition(bench, &base, 3)?;
    draft.source(other, ApplyMethod::Merge);
    draft.truth = Truth::Wrong(WrongResult {
        kinds: &[FindingKind::Reverted],
        path: check,
        texts: vec![text],
    });
    Ok(draft)
}

/// Joins what two texts add to a third, each as one block.
fn joined(base: &str, one: &str, other: &str) -> String {
    let lines =
        |text: &str| -> Vec<String> { text.split_inclusive('\n').map(str::to_owned).collect() };
    let (base, one, other) = (lines(base), lines(one), lines(other));
    let block = |text: &[String]| {
        let begins = base.iter().zip(text).take_while(|(a, b)| a == b).count();
        let added = text.len() - base.len();
        (begins, text[begins..begins + added].to_vec())
    };
    let mut blocks = [block(&one), block(&other)];
    blocks.sort_by_key(|(at, _)| *at);
    let mut joined = base;
    for (at, added) in blocks.into_iter().rev() {
        joined.splice(at..at, added);
    }
    joined.concat()
}

/// Two add the same function, each in another place.
pub(super) fn duplicated(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let base = bench.project.files.clone();
    let mut draft = CaseDraft::new(base.clone());
    let function = bench.function(None);
    for slot in [1, 5] {
        let mut files = base.clone();
        bench.put(&mut files, &function, slot)?;
        let sentence = bench.sentence();
        let line = format!("\n{}. The", 5 + slot * 3);
        if let Some(prose) = files.get_mut(PROSE) {
            replace(prose, &line, &format!("\n{sentence}{}", line.trim_start()))?;
        }
        draft.source(files, ApplyMethod::Merge);
    }
    draft.truth = Truth::Wrong(WrongResult {
        kinds: &[FindingKind::Duplicated],
        path: bench.project.code.clone(),
        texts: vec![function.name],
    });
    Ok(draft)
}

/// Something is in the result that no source brought: lines, or the markers of a conflict.
pub(super) fn unasked(bench: &mut Workbench) -> anyhow::Result<CaseDraft> {
    let base = bench.project.files.clone();
    let mut draft = CaseDraft::new(base.clone());
    let is_marker = bench.random.chance(50);
    for slot in [1, 4] {
        let (mut files, _) = addition(bench, &base, slot)?;
        if let (true, Some(prose)) = (is_marker, files.get_mut(PROSE)) {
            replace(prose, "\n20. The", &format!("\n20. {} The", bench.name()))?;
        }
        draft.source(files, ApplyMethod::Merge);
    }
    if is_marker {
        draft.hand.settles = Some(Settling::AsItLies);
        draft.truth = Truth::Markers {
            path: PROSE.to_owned(),
        };
        return Ok(draft);
    }
    let sentence = bench.sentence();
    draft.hand.afterwards = Some(TextChange {
        path: PROSE.to_owned(),
        from: "\n26. The".to_owned(),
        to: format!("\n{sentence}26. The"),
    });
    draft.truth = Truth::Wrong(WrongResult {
        kinds: &[FindingKind::Unexpected],
        path: PROSE.to_owned(),
        texts: vec![sentence],
    });
    Ok(draft)
}
