//! What the checks built on the base is lent to their runs on the change, where the tools look at it
//! before they use it.

use crate::environment::Environment;
use crate::program::Output;

/// A build as tools make it: from sources that are newer than what was built.
const BUILD: &str = "\
    mkdir -p target\n\
    [ -e target/log ] && echo lent\n\
    [ target/out -nt source.txt ] || { cp source.txt target/out; echo built; }\n\
    echo run >> target/log\n\
    grep -q right target/out\n";

/// Returns a project whose branch `change` makes the source right.
fn with_change(files: &[(&str, &str)]) -> Environment {
    let env = Environment::new();
    env.write(
        "Cargo.toml",
        "[package]\nname = \"one\"\nversion = \"1.0.0\"\n",
    );
    env.write(".gitignore", "/target\n");
    env.write("build.sh", BUILD);
    env.write("source.txt", "wrong\n");
    env.write("vendor/two/source.txt", "two\n");
    env.commit_all("base");
    env.git(&["checkout", "--quiet", "-b", "change"]);
    env.write("source.txt", "right\n");
    for (name, content) in files {
        env.write(name, content);
    }
    env.commit_all("right");
    env.git(&["checkout", "--quiet", "main"]);
    env
}

fn prove(env: &Environment, check: &str) -> Output {
    env.kapi(&["prove", "change", "--base", "main", "--verify", check])
}

#[test]
fn what_was_built_on_the_base_is_there_and_no_source_is_taken_for_older() {
    let env = with_change(&[]);
    let proved = prove(&env, "sh build.sh");
    assert_eq!(proved.code, 0, "{proved:?}");
    // The log has the base's line and one more, however often the change was looked at.
    let shared_in = prove(&env, "sh build.sh && [ $(wc -l < target/log) = 2 ]");
    assert_eq!(shared_in.code, 0, "{shared_in:?}");
    assert!(!env.repository().join("target").exists());
}

#[test]
fn a_changed_dependency_is_built_anew() {
    let env = with_change(&[("vendor/two/source.txt", "changed\n")]);
    let proved = prove(&env, "sh build.sh && [ $(wc -l < target/log) = 1 ]");
    assert_eq!(proved.code, 0, "{proved:?}");
}
