//! What a repository of the corpus begins as: a made-up project, or a published package, with a few
//! functions of ours and checks of them.
//!
//! Everything random is drawn from the seed of the case.

use std::collections::BTreeMap;

use anyhow::{Context as _, ensure};
use kapi_testkit::converge::random::Random;

use super::language::{Language, NumberFunction};

/// Files by their paths.
pub(super) type Files = BTreeMap<String, String>;

/// The script that runs every check and names those that fail.
pub(super) const RUN_CHECKS: &str = "run-checks.sh";
/// What it does.
const RUN_CHECKS_TEXT: &str = "code=0\nfor check in checks/*.sh; do\n    \
    sh \"$check\" > /dev/null 2>&1 || { echo \"$check\"; code=1; }\ndone\nexit $code\n";
/// The functions of ours in the code, and one that calls the first of them.
const FUNCTIONS: usize = 8;
/// How many of the first have a check, as the last has.
const CHECKED: usize = 2;
/// Words that names and sentences are made of.
const WORDS: [&str; 24] = [
    "amber", "birch", "cedar", "delta", "ember", "fjord", "grove", "heron", "inlet", "junco",
    "knoll", "larch", "maple", "north", "ocean", "plume", "quartz", "raven", "slate", "tundra",
    "umber", "vale", "willow", "yarrow",
];

/// A project before anybody changes it.
#[derive(Debug, Clone)]
pub(super) struct BaseProject {
    /// What it is called in tables.
    pub(super) name: String,
    /// Its language.
    pub(super) language: Language,
    /// Its files, without any of ours.
    pub(super) files: Files,
    /// The file that changes are made to.
    pub(super) code: String,
}

/// A project with functions and checks of ours, and the chance of its case.
#[derive(Debug, Clone)]
pub(super) struct Workbench {
    pub(super) project: BaseProject,
    pub(super) random: Random,
    /// The functions of ours, the last of which calls the first.
    pub(super) functions: Vec<NumberFunction>,
    n_names: u32,
}

/// A file of prose in every repository.
pub(super) const PROSE: &str = "docs/ABOUT.txt";

impl BaseProject {
    /// Makes one up.
    pub(super) fn made_up(language: Language, random: &mut Random) -> Self {
        let extension = language.extension();
        let code = format!("src/stock.{extension}");
        let mut text = String::new();
        for n in 0..random.between(8, 16) {
            let function = NumberFunction {
                name: format!("shelf_{n}"),
                value: random.between(100_000, 999_999),
                calls: None,
                comment: format!("Shelf {n}, next to the {}.", word(random)),
            };
            text.push_str(&language.write(&function));
            text.push('\n');
        }
        let mut files = Files::new();
        files.insert(code.clone(), text);
        Self {
            name: format!("made up, {extension}"),
            language,
            files,
            code,
        }
    }
}

fn word(random: &mut Random) -> &'static str {
    let at = random.next() % (WORDS.len() as u64);
    usize::try_from(at)
        .ok()
        .and_then(|at| WORDS.get(at))
        .copied()
        .unwrap_or("stone")
}

impl Workbench {
    /// Puts our functions and checks into a project.
    pub(super) fn new(mut project: BaseProject, mut random: Random) -> anyhow::Result<Self> {
        let prose: String = (1..=30)
            .map(|n| {
                format!(
                    "{n}. The {} is near the {}.\n",
                    word(&mut random),
                    word(&mut random)
                )
            })
            .collect();
        project.files.insert(PROSE.to_owned(), prose);
        project
            .files
            .insert(RUN_CHECKS.to_owned(), RUN_CHECKS_TEXT.to_owned());
        let mut bench = Self {
            project,
            random,
            functions: Vec::new(),
            n_names: 0,
        };
        let mut files = bench.project.files.clone();
        for n in 0..FUNCTIONS {
            let calls =
                (n + 1 == FUNCTIONS).then(|| bench.functions.first().map(|it| it.name.clone()));
            let function = bench.function(calls.flatten());
            if bench.put(&mut files, &function, n % SLOTS).is_err() {
                // There are too few places yet: at the end there is one more.
                let text = bench.project.language.write(&function);
                bench.code(&mut files)?.extend(["\n", text.as_str()]);
            }
            if n < CHECKED || n + 1 == FUNCTIONS {
                bench.add_check(&mut files, &function);
            }
            bench.functions.push(function);
        }
        bench.project.files = files;
        Ok(bench)
    }

    /// Returns a name that nothing has.
    pub(super) fn name(&mut self) -> String {
        self.n_names += 1;
        format!(
            "{}_{}_{}",
            word(&mut self.random),
            word(&mut self.random),
            self.n_names
        )
    }

    /// Returns a function that is nowhere yet.
    pub(super) fn function(&mut self, calls: Option<String>) -> NumberFunction {
        let name = self.name();
        NumberFunction {
            value: self.random.between(10_000, 99_999),
            calls,
            comment: format!(
                "About {} and the {}.",
                name.replace('_', " "),
                word(&mut self.random)
            ),
            name,
        }
    }

    /// Returns the number that a function of ours gives.
    pub(super) fn number(&self, function: &NumberFunction) -> u32 {
        let called = function.calls.as_ref().and_then(|name| {
            let mut functions = self.functions.iter();
            functions.find(|other| other.name == *name)
        });
        function.value + called.map_or(0, |other| other.value)
    }

    /// Puts a function into the code; each `slot` is a place of its own.
    pub(super) fn put(
        &self,
        files: &mut Files,
        function: &NumberFunction,
        slot: usize,
    ) -> anyhow::Result<()> {
        let BaseProject { code, language, .. } = &self.project;
        let text = files
            .get_mut(code)
            .with_context(|| format!("find {code}"))?;
        *text = with_function(*language, text, &language.write(function), slot)?;
        Ok(())
    }

    /// Adds a check of a function.
    pub(super) fn add_check(&self, files: &mut Files, function: &NumberFunction) {
        let BaseProject { code, language, .. } = &self.project;
        let script = language.check(code, &function.name, self.number(function));
        files.insert(check_path(function), script);
    }

    /// Returns the code of some files.
    pub(super) fn code<'a>(&self, files: &'a mut Files) -> anyhow::Result<&'a mut String> {
        let code = &self.project.code;
        files.get_mut(code).with_context(|| format!("find {code}"))
    }

    /// Returns a line of prose that nobody else writes.
    pub(super) fn sentence(&mut self) -> String {
        format!(
            "Somebody saw {} by the {}.\n",
            self.name(),
            word(&mut self.random)
        )
    }
}

/// Returns where the check of a function lies.
pub(super) fn check_path(function: &NumberFunction) -> String {
    format!("checks/{}.sh", function.name)
}

/// Replaces a text that stands in another once.
pub(super) fn replace(text: &mut String, from: &str, to: &str) -> anyhow::Result<()> {
    ensure!(
        text.matches(from).count() == 1,
        "replace {from:?}: it must stand there once"
    );
    *text = text.replacen(from, to, 1);
    Ok(())
}

/// Puts a function before the n-th place where one may stand, counted around; places are those of the
/// text as it is, so that two who begin with the same text and take different slots do not meet.
fn with_function(
    language: Language,
    text: &str,
    function: &str,
    slot: usize,
) -> anyhow::Result<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let is_place = |at: &usize| {
        let before = at.checked_sub(1).and_then(|before| lines.get(before));
        let is_open = before.is_some_and(|line| line.trim().is_empty());
        is_open && lines.get(*at).is_some_and(|line| language.opens(line))
    };
    let mut places: Vec<usize> = (1..lines.len()).filter(is_place).collect();
    // Neighbours would touch one another.
    let mut last = 0;
    places.retain(|at| {
        let is_apart = *at > last + 3;
        if is_apart {
            last = *at;
        }
        is_apart
    });
    let at = slot
        .checked_mul(places.len())
        .map(|n| n / SLOTS)
        .and_then(|at| places.get(at));
    let at = *at.with_context(|| {
        format!(
            "find {SLOTS} places for functions, there are {}",
            places.len()
        )
    })?;
    ensure!(
        places.len() >= SLOTS,
        "find {SLOTS} places for functions, there are {}",
        places.len()
    );
    let (before, after) = lines.split_at(at);
    Ok(format!("{}{function}\n{}", before.concat(), after.concat()))
}

/// How many places a case tells apart.
pub(super) const SLOTS: usize = 7;
