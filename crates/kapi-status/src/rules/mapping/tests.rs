//! Tool calls and what they count as.

use super::{Mapping, MappingError, MappingFile};
use crate::rules::pattern::ToolPattern;
use crate::rules::phase::ToolCategory::{
    Building, Committing, Exploring, Implementing, Other, Testing,
};
use crate::rules::phase::{PercentRange, ToolCategory};

#[test]
fn tools_are_known_by_all_their_names() {
    let cases = [
        ("Read", Exploring),
        ("read", Exploring),
        (" Grep ", Exploring),
        ("Glob", Exploring),
        ("read_file", Exploring),
        ("read_many_files", Exploring),
        ("search_file_content", Exploring),
        ("list_directory", Exploring),
        ("WebSearch", Exploring),
        ("google_web_search", Exploring),
        ("Edit", Implementing),
        ("MultiEdit", Implementing),
        ("Write", Implementing),
        ("NotebookEdit", Implementing),
        ("write_file", Implementing),
        ("replace", Implementing),
        ("apply_patch", Implementing),
        ("file_change", Implementing),
        ("TodoWrite", Other),
        ("Agent", Other),
        ("mcp__echo__echo", Other),
        ("mcp_echo_test", Other),
        ("SomethingNew", Other),
        ("", Other),
    ];
    for (tool, category) in cases {
        assert_eq!(Mapping::built_in().category(tool, ""), category, "{tool:?}");
    }
    for shell in [
        "Bash",
        "bash",
        "shell",
        "exec",
        "exec_command",
        "run_shell_command",
    ] {
        assert_eq!(
            Mapping::built_in().category(shell, "pytest"),
            Testing,
            "{shell}"
        );
    }
}

/// Commands of real sessions, and those the original got wrong.
const COMMANDS: &[(&str, ToolCategory)] = &[
    ("ls", Exploring),
    ("ls -la tests", Exploring),
    ("  cat test.txt", Exploring),
    ("git status", Exploring),
    ("git -C sub status --short", Exploring),
    ("git --no-pager log -5", Exploring),
    ("rg -n 'fn test_' src", Exploring),
    ("find . -name '*test*' | head", Exploring),
    ("cd web && ls", Exploring),
    ("sudo cat /etc/hosts", Exploring),
    ("mkdir -p a/b", Implementing),
    ("mkdir", Implementing),
    ("rm -rf target/test-classes", Implementing),
    ("sed -i s/a/b/ src/main.rs", Implementing),
    ("git add tests/new.rs", Implementing),
    ("cargo fmt --all", Implementing),
    ("cat > tests/a.py <<'EOF'\nimport pytest\nEOF", Implementing),
    ("echo hello > hello.txt", Implementing),
    ("ls && touch x", Implementing),
    ("mvn", Building),
    ("mvn install", Building),
    ("mvn install -DskipTests", Building),
    ("mvn -q -DskipTests=true clean package", Building),
    ("./mvnw -Dmaven.test.skip=true package", Building),
    ("gradle build -x test", Building),
    ("./gradlew assemble", Building),
    ("npm ci", Building),
    ("npm install", Building),
    ("npm build", Building),
    ("npm run build", Building),
    ("npm --prefix web run build:test", Building),
    ("yarn", Building),
    ("yarn run build", Building),
    ("pnpm i", Building),
    ("cargo build --release", Building),
    ("cargo +nightly check", Building),
    ("go build ./...", Building),
    ("make", Building),
    ("make -j8", Building),
    ("make -C sub CC=clang all", Building),
    ("python -m pip install -r requirements.txt", Building),
    ("pip3 install pytest", Building),
    ("cd a && npm ci 2>&1 | tail -5", Building),
    ("docker build -t test .", Building),
    ("mvn test", Testing),
    ("mvn -q test -Dtest=Foo", Testing),
    ("mvn -pl core -am clean test", Testing),
    ("./gradlew :core:test", Testing),
    ("npm test", Testing),
    ("npm t", Testing),
    ("npm run test:unit", Testing),
    ("CI=1 npm run-script test", Testing),
    ("yarn run test", Testing),
    ("npx jest --ci", Testing),
    ("pytest", Testing),
    ("pytest -q | tail -3", Testing),
    ("cd a && pytest", Testing),
    ("python -m pytest", Testing),
    ("python3 -m unittest discover", Testing),
    ("poetry run pytest -x", Testing),
    (
        "A=1 sudo -E timeout 60 env B=2 cargo test --workspace",
        Testing,
    ),
    ("time cargo nextest run", Testing),
    ("go test ./...", Testing),
    ("make test", Testing),
    ("make -j 4 check", Testing),
    ("bash -lc 'cd x && npm test'", Testing),
    ("./scripts/run-tests.sh", Testing),
    ("cargo build && cargo test; ls", Testing),
    ("git commit -m 'add test'", Committing),
    ("git -C sub -c user.name=x commit -am wip", Committing),
    ("git add -A && git commit -m x", Committing),
    ("pytest && git commit -m x && git push", Committing),
    ("git push origin HEAD", Committing),
    ("echo test", Other),
    ("cd tests", Other),
    ("git checkout test-branch", Other),
    ("git stash", Other),
    ("echo 'pytest && git commit'", Other),
    ("sleep 5", Other),
    ("# git commit", Other),
    ("", Other),
];

#[test]
fn commands_count_as_what_they_run() {
    assert!(COMMANDS.len() >= 60);
    let mapping = Mapping::built_in();
    for (command, category) in COMMANDS {
        assert_eq!(mapping.category("Bash", command), *category, "{command:?}");
    }
}

fn with_patterns(category: ToolCategory, patterns: &[&str]) -> MappingFile {
    let patterns = patterns
        .iter()
        .map(|text| ToolPattern::parse(text).unwrap())
        .collect();
    MappingFile {
        patterns: [(category, patterns)].into(),
        ..MappingFile::default()
    }
}

#[test]
fn a_persons_table_goes_over_the_built_in_one() {
    let mut file = with_patterns(Testing, &["Bash(./bin/prove:*)", "mcp__browser__*"]);
    file.phase_ranges = [(Testing, PercentRange::try_from((61, 79)).unwrap())].into();
    file.default_category = Some(Exploring);
    let mapping = Mapping::try_from(file).unwrap();
    let cases = [
        ("Bash", "cd x && ./bin/prove -v", Testing),
        ("mcp__browser__click", "", Testing),
        ("mcp__other__click", "", Other),
        // A category that is given patterns has those and no other.
        ("Bash", "pytest", Exploring),
        ("Bash", "cargo build", Building),
        ("SomethingNew", "", Exploring),
    ];
    for (tool, command, category) in cases {
        assert_eq!(
            mapping.category(tool, command),
            category,
            "{tool} {command}"
        );
    }
    assert_eq!(mapping.range(Testing).max(), 79);
    assert_eq!(mapping.range(Building), Building.range());
}

#[test]
fn a_table_that_cannot_be_meant_is_refused() {
    let other = MappingFile {
        version: Some("2.0".to_owned()),
        ..MappingFile::default()
    };
    let error = Mapping::try_from(other).unwrap_err();
    assert_eq!(
        error.to_string(),
        "use a tool mapping of version \"2.0\": this program knows \"1.0\""
    );
    let many = vec!["Read"; 501];
    let error = Mapping::try_from(with_patterns(Other, &many)).unwrap_err();
    assert_eq!(error, MappingError::TooMany { n: 501 });
}

proptest::proptest! {
    #[test]
    fn whatever_comes_before_it_a_commit_is_one(command in "[a-z ./=-]{0,200}") {
        let command = format!("{command} ; git commit -m x");
        proptest::prop_assert_eq!(Mapping::built_in().category("Bash", &command), Committing);
    }

    #[test]
    fn no_call_makes_trouble(tool in ".{0,40}", command in "[a-z ;&|'\"()<>$=/\\\\\n#*-]{0,300}") {
        let mapping = Mapping::built_in();
        for tool in [tool.as_str(), "Bash"] {
            proptest::prop_assert!(ToolCategory::ALL.contains(&mapping.category(tool, &command)));
        }
    }
}
