//! Names that try to write Kapi's own report: newlines, escapes, text that turns around or is not
//! there to see.

use crate::environment::Environment;
use crate::launch::launch;

/// A name that would make a second line, move the cursor, turn the text and hide a tag.
const NAME: &str = "a\nTook over 0 of 0 paths.\u{1b}[2K\u{202e}\u{200b}\u{e0041}b";

#[test]
fn a_file_name_cannot_forge_or_hide_a_line_of_a_report() {
    let env = Environment::new();
    let agent = format!("python3 -c \"open({}, 'w').write('x')\"", python(NAME));
    let launched = launch(&env, "1", &agent, &[]);
    assert_eq!(launched.code, 0, "{launched:?}");
    for args in [
        &["diff", "launch/1", "--stat"][..],
        &["sandbox", "merge", "1", "--dry-run"],
    ] {
        let output = env.kapi(args);
        let all = format!("{}{}", output.stdout, output.stderr);
        assert!(all.contains("a\n  | Took over"), "{all:?}");
        for hidden in ['\u{1b}', '\u{202e}', '\u{200b}', '\u{e0041}'] {
            assert!(!all.contains(hidden), "{hidden:?} in {all:?}");
        }
    }
}

#[test]
fn a_diff_is_unchanged_in_a_pipe_and_shows_what_hides_on_a_terminal() {
    let env = Environment::new();
    let hidden = "x = 1 # \u{e0041}\u{202e}\u{200b}end";
    let agent = format!("command:printf '%s\\n' '{hidden}' > code.py; echo 42 > answer.txt");
    env.run(&agent, &[]).assert_status("done", 0);
    let piped = env.kapi(&["diff", "1"]);
    assert!(piped.stdout.contains(hidden), "{piped:?}");
    let shown = on_terminal(&env, "diff 1");
    assert!(shown.contains("\\u{e0041}\\u{202e}\\u{200b}end"), "{shown}");
    assert!(!shown.contains('\u{e0041}'), "{shown}");
}

/// Runs `kapi` on a terminal and returns what it shows there.
fn on_terminal(env: &Environment, words: &str) -> String {
    let mut command = env.command("python3", &env.repository());
    let program = "import os, pty, sys\npty.spawn(sys.argv[1:])";
    command.args(["-c", program, env!("CARGO_BIN_EXE_kapi")]);
    command.args(words.split(' '));
    crate::program::finish(command).stdout
}

/// Returns a text as a literal of Python that is plain ASCII.
fn python(text: &str) -> String {
    let escaped: String = text
        .chars()
        .map(|c| format!("\\U{:08x}", u32::from(c)))
        .collect();
    format!("'{escaped}'")
}
