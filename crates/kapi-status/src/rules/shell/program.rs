//! The program of a simple command: what wraps it, and its plainest spelling.
//!
//! Tables of well-known wrappers and of options that stand before a sub-command. A wrapper that
//! is not in them is taken for the program itself. Knows nothing of categories.

/// What is left when wrappers are taken off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum BareCommand {
    /// Nothing that runs.
    Nothing,
    /// A shell is to run this.
    Script(String),
    /// A program and its words.
    Words(Vec<String>),
}

/// A program that runs the program after it.
struct Wrapper {
    name: &'static str,
    /// Its options that take the next word.
    value_options: &'static [&'static str],
    /// Words of its own between its options and the program.
    n_operands: usize,
}

const fn wrapper(name: &'static str, value_options: &'static [&'static str]) -> Wrapper {
    Wrapper {
        name,
        value_options,
        n_operands: 0,
    }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("sudo", &["-u", "-g", "-C", "-h", "-p", "-D", "-r", "-t"]),
    wrapper("doas", &["-u", "-C"]),
    wrapper("env", &["-u", "-C", "--unset", "--chdir"]),
    wrapper("nice", &["-n"]),
    wrapper("ionice", &["-c", "-n"]),
    wrapper("stdbuf", &["-i", "-o", "-e"]),
    wrapper("xargs", &["-n", "-I", "-P", "-L", "-d", "-s", "-a"]),
    wrapper("npx", &["-p", "--package"]),
    wrapper("exec", &["-a"]),
    wrapper("time", &["-f", "-o"]),
    wrapper("nohup", &[]),
    wrapper("setsid", &[]),
    wrapper("command", &[]),
    wrapper("builtin", &[]),
    wrapper("eatmydata", &[]),
    wrapper("xvfb-run", &["-s", "-n"]),
    wrapper("bunx", &[]),
    wrapper("pnpx", &[]),
    Wrapper {
        name: "timeout",
        value_options: &["-s", "-k", "--signal", "--kill-after"],
        n_operands: 1,
    },
];

/// Wrappers of two words.
const RUNNERS: &[(&str, &str)] = &[
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("hatch", "run"),
    ("rye", "run"),
    ("pdm", "run"),
    ("bundle", "exec"),
    ("pnpm", "exec"),
    ("pnpm", "dlx"),
    ("yarn", "exec"),
    ("npm", "exec"),
    ("direnv", "exec"),
];

/// Words of the shell's own that stand before a program.
const KEYWORDS: &[&str] = &[
    "if", "then", "else", "elif", "do", "while", "until", "!", "{", "fi", "done", "}",
];

/// The options before a sub-command that take the next word.
const VALUE_OPTIONS: &[(&str, &[&str])] = &[
    (
        "git",
        &["-C", "-c", "--git-dir", "--work-tree", "--namespace"],
    ),
    (
        "mvn",
        &[
            "-f",
            "--file",
            "-pl",
            "--projects",
            "-P",
            "-s",
            "--settings",
            "-T",
            "-rf",
        ],
    ),
    ("gradle", &["-p", "--project-dir", "-b", "-c", "-I"]),
    ("npm", &["--prefix", "-C", "-w", "--workspace"]),
    ("yarn", &["--cwd"]),
    ("pnpm", &["-C", "--dir", "-F", "--filter"]),
    (
        "cargo",
        &["--manifest-path", "--config", "-C", "-Z", "--color"],
    ),
    ("make", &["-C", "-f", "-I", "--directory", "--file"]),
    ("go", &["-C"]),
    ("docker", &["-H", "--context", "--config"]),
    ("podman", &["--url", "--connection"]),
    ("bazel", &[]),
    ("just", &["-f", "-d"]),
    ("dotnet", &[]),
    ("swift", &[]),
];

/// Takes wrappers, assignments and words of the shell off a simple command.
pub(super) fn unwrap(mut words: Vec<String>) -> BareCommand {
    loop {
        let Some(first) = words.first() else {
            return BareCommand::Nothing;
        };
        let name = base_name(first);
        if matches!(first.as_str(), "for" | "case" | "select" | "function") {
            return BareCommand::Nothing;
        }
        if KEYWORDS.contains(&first.as_str()) || is_assignment(first) {
            words.remove(0);
            continue;
        }
        if let Some(wrapper) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
            words = inner(&words, wrapper);
            continue;
        }
        let second = words.get(1).map(String::as_str);
        if RUNNERS
            .iter()
            .any(|runner| (name, second) == (runner.0, Some(runner.1)))
        {
            words = inner(
                words.get(1..).unwrap_or_default(),
                &wrapper("", &["--with", "-w"]),
            );
            continue;
        }
        if is_python(name) && second == Some("-m") {
            words.drain(..2);
            continue;
        }
        return match (script_of(name, &words), name) {
            (Some(script), _) => BareCommand::Script(script),
            (None, "eval") => BareCommand::Script(words.split_off(1).join(" ")),
            (None, _) => BareCommand::Words(words),
        };
    }
}

/// Returns what stands after a wrapper's own options and operands.
fn inner(words: &[String], wrapper: &Wrapper) -> Vec<String> {
    let mut rest = words.iter().skip(1).peekable();
    while let Some(option) = rest.next_if(|word| word.starts_with('-')) {
        if option == "--" {
            break;
        }
        if wrapper.value_options.contains(&option.as_str()) {
            rest.next();
        }
    }
    rest.skip(wrapper.n_operands).cloned().collect()
}

/// Returns the script of `sh -c script`.
fn script_of(name: &str, words: &[String]) -> Option<String> {
    if !matches!(
        name,
        "sh" | "bash" | "zsh" | "dash" | "ash" | "ksh" | "fish"
    ) {
        return None;
    }
    let mut rest = words.iter().skip(1);
    let option = rest.find(|word| !word.starts_with('-') || is_command_option(word))?;
    if is_command_option(option) {
        rest.next().cloned()
    } else {
        None
    }
}

fn is_command_option(word: &str) -> bool {
    word.starts_with('-') && !word.starts_with("--") && word.ends_with('c')
}

/// Returns the plainest spelling: the program by its name, then its sub-command, lower case.
pub(super) fn plain(words: &[String]) -> Vec<String> {
    let mut words = without_skipped_tests(words.to_vec());
    let Some(first) = words.first_mut() else {
        return words;
    };
    *first = match base_name(first) {
        "mvnw" | "maven" => "mvn".to_owned(),
        "gradlew" => "gradle".to_owned(),
        "gmake" => "make".to_owned(),
        "pip3" => "pip".to_owned(),
        name => name.to_owned(),
    };
    let known = VALUE_OPTIONS
        .iter()
        .find(|(name, _)| Some(*name) == words.first().map(String::as_str));
    let ordered = match known {
        Some((name, options)) => sub_command_first(name, options, &words),
        None => words,
    };
    ordered.iter().map(|word| word.to_lowercase()).collect()
}

/// Moves what stands between a program and its sub-command to the end.
fn sub_command_first(name: &str, value_options: &[&str], words: &[String]) -> Vec<String> {
    let mut rest = words.iter().skip(1).peekable();
    let mut moved = Vec::new();
    while let Some(word) = rest.next_if(|word| is_before_sub_command(name, word)) {
        moved.push(word.clone());
        let has_value = value_options.contains(&word.as_str());
        let has_count = word == "-j" && rest.peek().is_some_and(|next| is_number(next));
        if has_value || has_count {
            moved.extend(rest.next().cloned());
        }
    }
    let mut ordered = vec![name.to_owned()];
    ordered.extend(rest.cloned());
    // `yarn run x`, `npm run-script x`: the one spelling that patterns are written for.
    if name == "yarn" && ordered.get(1).is_some_and(|word| word == "run") {
        ordered.remove(1);
    }
    if let Some(word) = ordered.get_mut(1).filter(|word| *word == "run-script") {
        "run".clone_into(word);
    }
    ordered.extend(moved);
    ordered
}

fn is_before_sub_command(name: &str, word: &str) -> bool {
    let is_toolchain = name == "cargo" && word.starts_with('+');
    let is_variable = name == "make" && is_assignment(word);
    word.starts_with('-') || is_toolchain || is_variable
}

/// Takes out the words that keep a build from running tests, so that it reads as a build.
pub(super) fn without_skipped_tests(words: Vec<String>) -> Vec<String> {
    let mut kept: Vec<String> = Vec::with_capacity(words.len());
    let mut words = words.into_iter().peekable();
    while let Some(word) = words.next() {
        let is_skip = matches!(
            word.as_str(),
            "-DskipTests"
                | "-DskipTests=true"
                | "-DskipITs"
                | "-DskipITs=true"
                | "-Dmaven.test.skip"
                | "-Dmaven.test.skip=true"
                | "--skip-tests"
        );
        if is_skip {
            continue;
        }
        let is_exclusion = matches!(word.as_str(), "-x" | "--exclude-task");
        let names_tests = |next: &String| next.to_lowercase().ends_with("test");
        if is_exclusion && words.next_if(names_tests).is_some() {
            continue;
        }
        kept.push(word);
    }
    kept
}

fn base_name(program: &str) -> &str {
    let name = program.rsplit('/').next().unwrap_or(program);
    name.strip_suffix(".exe")
        .or_else(|| name.strip_suffix(".cmd"))
        .unwrap_or(name)
}

fn is_python(name: &str) -> bool {
    name.strip_prefix("python").is_some_and(|version| {
        version
            .bytes()
            .all(|byte| byte.is_ascii_digit() || byte == b'.')
    })
}

fn is_number(word: &str) -> bool {
    !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_digit())
}

/// Tells whether a word is `NAME=value`.
fn is_assignment(word: &str) -> bool {
    let Some((name, _)) = word.split_once('=') else {
        return false;
    };
    let begins_plain = name
        .bytes()
        .next()
        .is_some_and(|byte| byte.is_ascii_alphabetic() || byte == b'_');
    begins_plain
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'+')
}
