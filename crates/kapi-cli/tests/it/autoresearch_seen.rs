//! A search as a person sees it: in the terminal, on its page in a real browser, and as a picture.
//!
//! What an agent says is hostile in one of them.

use std::fs;

use serde_json::{Value, json};

use crate::autoresearch::Machine;
use crate::browser::{Scheme, Sight, WIDTHS, look};
use crate::dialogs::at_narrow_terminal;
use crate::environment::Environment;

/// Runs of another tool's ledger: as many as are taken over.
const RUNS: u32 = 5_000;

/// Writes page and picture, and returns them.
fn written(env: &Environment, reference: &str) -> (String, String) {
    let output = env.kapi(&[
        "status",
        reference,
        "--html",
        "page.html",
        "--svg",
        "chart.svg",
    ]);
    assert_eq!(output.code, 0, "{output:?}");
    assert!(output.stdout.contains("Workflow "), "{output:?}");
    (env.read("page.html"), env.read("chart.svg"))
}

/// Looks at the search of a mixed bag of ideas.
pub(crate) fn assert_seen(machine: &Machine) {
    let env = &machine.env;
    let (page, picture) = written(env, "1");
    let pictures = [picture.as_str()];
    assert_eq!(
        page.matches(">by the rule plain<").count(),
        10,
        "all that was measured"
    );
    for (scheme, ground) in [
        (Scheme::Light, "rgb(255, 255, 255)"),
        (Scheme::Dark, "rgb(15, 20, 26)"),
    ] {
        let sight = look(env, &page, &pictures, &WIDTHS, scheme);
        sight.assert_sound();
        for (frame, width) in sight.frames.iter().zip(WIDTHS) {
            assert_eq!(frame["width"], width, "{frame:#}");
            assert_eq!(frame["ground"], ground, "{scheme:?}: {frame:#}");
            assert_mixed_bag(frame);
        }
    }
    assert_terminal(env);
    assert_plain_files(env);
    // What nobody holds any more is git's to collect.
    env.git(&[
        "update-ref",
        "-d",
        "refs/kapi/001-fewer-comparisons/proposal-2",
    ]);
    env.git(&["reflog", "expire", "--expire=now", "--all"]);
    env.git(&["gc", "--quiet", "--prune=now"]);
    let (page, _) = written(env, "1");
    assert_eq!(page.matches("They cannot be read: failed to ").count(), 1);
}

/// Looks at a search of two segments, the first of another tool.
pub(crate) fn assert_segments(env: &Environment) {
    let (page, picture) = written(env, "1");
    assert!(picture.contains(">segment 1</text>"), "{picture}");
    let line = picture.split("<path class=\"best\" d=\"").nth(1).unwrap();
    let line = line.split('"').next().unwrap();
    assert_eq!(line.matches('M').count(), 2, "a line for each: {line}");
    let sight = look(env, &page, &[&picture], &[1200, 320], Scheme::Light);
    sight.assert_sound();
    for frame in &sight.frames {
        assert_eq!(frame["verdicts"], json!(["kept", "baseline", "baseline"]));
        // What another tool recorded has no commit of ours.
        assert_eq!(frame["patches"], 1, "{frame:#}");
    }
}

/// Checks what the page says.
fn assert_mixed_bag(frame: &Value) {
    assert_eq!(
        frame["headings"],
        json!([
            "fewer comparisons",
            "Experiments",
            "Ideas",
            "Contract",
            "Phases",
            "Decisions",
            "Evidence",
            "Cost",
            "Documents"
        ])
    );
    assert_eq!(
        frame["tiles"].as_array().unwrap()[..3],
        [json!("990"), json!("84.19 %"), json!("11 of 50")]
    );
    for fact in ["Objective", "Proof", "Approved", "Head"] {
        assert!(
            frame["facts"].as_array().unwrap().contains(&json!(fact)),
            "{frame:#}"
        );
    }
    assert_eq!(
        frame["verdicts"],
        json!([
            "kept",
            "crashed",
            "crashed",
            "crashed",
            "checks failed",
            "discarded",
            "crashed",
            "discarded",
            "discarded",
            "discarded",
            "kept",
            "baseline"
        ])
    );
    assert_eq!(frame["results"][0], "990\u{2212}84.2 %");
    assert_eq!(frame["tried"][0], "sort by merging");
    assert_eq!(frame["patches"], 11, "every change can be read: {frame:#}");
    assert_eq!(frame["pictures"], 1, "one for this width: {frame:#}");
    let marks = frame["marks"].as_array().unwrap();
    assert_eq!(marks.len(), 12);
    for mark in ["run 8, checks failed: 1112", "run 11, crashed: no number"] {
        assert!(marks.contains(&json!(mark)), "{mark}: {frame:#}");
    }
    assert_eq!(
        frame["description"],
        "12 runs: 2 kept, 4 discarded, 4 crashed, 1 failed checks. Best 990, run 12: 84.19 % over the \
         baseline of 6263 (\u{b1} 0 % noise)."
    );
}

/// Looks at it where there is little room, few characters, and nobody at a terminal.
fn assert_terminal(env: &Environment) {
    let narrow = at_narrow_terminal(env, 40, &["status", "1"]);
    assert_eq!(narrow.code, 0, "{narrow:?}");
    let fields = ["  runs ", "  best ", "  gain ", "  ended ", "           "];
    let lines = narrow
        .stdout
        .lines()
        .map(|line| line.trim_end_matches('\r'));
    let lines: Vec<&str> = lines
        .filter(|line| fields.iter().any(|field| line.starts_with(field)))
        .collect();
    assert!(lines.len() > 6, "{narrow:?}");
    for line in lines {
        assert!(line.chars().count() <= 40, "{line:?}");
    }
    let plain = env.kapi(&["status", "1"]);
    assert!(!plain.stdout.contains('\u{1b}'), "{plain:?}");
    let mut command = env.command(env!("CARGO_BIN_EXE_kapi"), &env.repository());
    command.args(["status", "1"]).env("LANG", "C");
    let ascii = crate::program::finish(command);
    assert!(ascii.stdout.is_ascii(), "{ascii:?}");
    assert!(
        ascii.stdout.contains("  runs     #+++..__..._"),
        "{ascii:?}"
    );
}

/// What is no file is never replaced, what is one is replaced whole.
fn assert_plain_files(env: &Environment) {
    let status = |options: &[&str]| env.kapi(&[&["status"], options].concat());
    fs::create_dir(env.repository().join("dir")).unwrap();
    status(&["1", "--html", "dir"]).assert_error(2, &["is a directory", "name a file"]);
    status(&["1", "--svg", "/dev/null"]).assert_error(2, &["is not a regular file"]);
    status(&["1", "--html", "none/page.html"]).assert_error(4, &["none/page.html"]);
    let unnamed = status(&["--html", "page.html"]);
    assert_eq!(unnamed.code, 2, "{unnamed:?}");
    let link = env.repository().join("link.html");
    std::os::unix::fs::symlink("page.html", &link).unwrap();
    let document = env.json(&["status", "1", "--html", "link.html"]);
    assert_eq!(document["type"], "workflow", "{document:#}");
    assert!(link.is_symlink());
    assert!(env.read("page.html").contains("sort by merging"));
}

/// Returns a ledger whose words attack whoever shows them.
fn ledger() -> String {
    let hostile = "</td></style></title></svg><script>console.log('run')</script>\
        <img src=x onerror=console.log(1)>\u{202e}\u{0}\u{200b}'\"&amp;";
    let mut lines = vec![json!({
        "type": "config", "name": hostile, "metricName": "ops", "metricUnit": "<b>&\"",
        "bestDirection": "lower",
    })];
    for run in 1..=RUNS {
        let status = ["keep", "discard", "crash", "checks_failed"][(run % 4) as usize];
        let status = if run == 1 { "keep" } else { status };
        let (hostile, n_long) = if run % 20 == 0 {
            (hostile, 2_000)
        } else {
            ("<b>", 1)
        };
        lines.push(json!({
            "run": run, "commit": "a1b2c3d", "metric": 1e12 / f64::from(run), "status": status,
            "metrics": {"bytes": run}, "timestamp": 1, "segment": 0, "confidence": null,
            "description": format!("{hostile} {}", "long ".repeat(n_long)),
            "asi": {"hypothesis": hostile, "rollback_reason": hostile},
        }));
    }
    let lines: Vec<String> = lines.iter().map(Value::to_string).collect();
    format!("{}\n", lines.join("\n"))
}

#[test]
fn hostile_words_and_thousands_of_runs_are_only_shown() {
    let machine = Machine::new();
    let env = &machine.env;
    env.write(".auto/log.jsonl", &ledger());
    env.write(
        ".auto/measure.sh",
        "echo '</pre><script>console.log(2)</script>'\n",
    );
    env.write(
        ".auto/prompt.md",
        "# Sum\n\n## Files in Scope\n- `src`: the program\n",
    );
    env.commit_all("what another tool left");
    let dir = env.repository().display().to_string();
    let proposed = machine.search(&["--import", &dir, "--no-checks", "</script><script>"]);
    assert_eq!(proposed.code, 5, "{proposed:?}");
    let (page, picture) = written(env, "1");
    for text in [&page, &picture] {
        assert!(!text.contains("<script"), "markup is escaped");
        let hidden = ['\0', '\u{202e}', '\u{200b}'];
        assert!(!text.contains(hidden), "what hides is written out");
    }
    assert!(page.contains("\\u{202e}\\u{0}\\u{200b}"), "it can be seen");
    let sight = look(env, &page, &[&picture], &[1200, 360], Scheme::Light);
    sight.assert_sound();
    for frame in &sight.frames {
        assert_eq!(frame["marks"].as_array().unwrap().len(), RUNS as usize);
        assert_eq!(frame["verdicts"].as_array().unwrap().len(), 2_000);
    }
}

#[test]
fn a_page_that_would_do_more_than_show_itself_is_stopped_and_noticed() {
    let machine = Machine::new();
    let env = &machine.env;
    assert_eq!(machine.search(&["--no-drive"]).code, 0);
    let output = env.kapi(&["status", "1", "--html", "page.html"]);
    assert_eq!(output.code, 0, "{output:?}");
    let page = env.read("page.html");
    let chart = env.kapi(&["status", "1", "--svg", "chart.svg"]);
    chart.assert_error(6, &["has no chart yet", "--html FILE"]);
    let planted = "<script>document.title='run'</script><style>body{width:900px}</style></body>";
    let sight: Sight = look(
        env,
        &page.replace("</body>", planted),
        &["<svg"],
        &[400],
        Scheme::Light,
    );
    assert!(sight.complaints.len() >= 2, "{:?}", sight.complaints);
    assert_ne!(sight.pictures, [""]);
    assert_eq!(sight.frames[0]["scripts"], 1);
    let scroll = sight.frames[0]["scroll"].as_f64().unwrap();
    assert!(scroll <= 400.0, "the style was not applied: {scroll}");
}
