//! A real browser that looks at a page, in light or in dark, at several widths at once.
//!
//! Tells what it found and what it complained about; what should be there is each test's affair.

use serde_json::Value;

use crate::environment::{Environment, write};
use crate::program::{finish, parse};

const PROBE: &str = include_str!("../fixtures/pages/probe.js");

/// The widths of screens that a page is looked at on: a desk, a tablet, a phone, a small one.
pub(crate) const WIDTHS: [u32; 4] = [1200, 768, 360, 320];

/// What somebody prefers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Scheme {
    Dark,
    Light,
}

/// What a browser found.
pub(crate) struct Sight {
    /// What is in each frame.
    pub(crate) frames: Vec<Value>,
    /// What is wrong with each picture; empty where nothing is.
    pub(crate) pictures: Vec<String>,
    /// What it complained about.
    pub(crate) complaints: Vec<String>,
}

/// Opens a page at several widths, and reads pictures.
pub(crate) fn look(
    env: &Environment,
    page: &str,
    pictures: &[&str],
    widths: &[u32],
    scheme: Scheme,
) -> Sight {
    let source = escaped(page);
    let frames: String = widths
        .iter()
        .map(|width| format!("<iframe width={width} height=900 srcdoc=\"{source}\"></iframe>"))
        .collect();
    let pictures: String = pictures
        .iter()
        .map(|picture| format!("<textarea>{}</textarea>", escaped(picture)))
        .collect();
    let probe = env.root().join("probe.html");
    let head = "<!doctype html><meta charset=utf-8><meta name=color-scheme content='light dark'>";
    write(
        &probe,
        format!("{head}<body>{frames}{pictures}<script>{PROBE}</script>"),
    );
    // As Blink numbers them.
    let scheme = match scheme {
        Scheme::Dark => 0,
        Scheme::Light => 1,
    };
    let mut command = env.command("chromium", env.root());
    command.args([
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--enable-logging=stderr",
        "--virtual-time-budget=10000",
        "--dump-dom",
    ]);
    command.arg(format!(
        "--user-data-dir={}",
        env.root().join("browser").display()
    ));
    command.arg(format!("--blink-settings=preferredColorScheme={scheme}"));
    command.arg(format!("file://{}", probe.display()));
    let output = finish(command);
    let found = output.stdout.split_once("<pre>");
    let found = found.and_then(|(_, rest)| rest.split_once("</pre>"));
    let found = found.unwrap_or_else(|| panic!("the browser says nothing: {}", output.stderr));
    let found = parse(&decoded(found.0));
    let complaints = output
        .stderr
        .lines()
        .filter(|line| line.contains("CONSOLE"));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Sight {
        frames: found["frames"].as_array().unwrap().clone(),
        pictures: found["pictures"]
            .as_array()
            .unwrap()
            .iter()
            .map(text)
            .collect(),
        complaints: complaints.map(str::to_owned).collect(),
    }
}

impl Sight {
    /// Checks what holds for every page: nothing runs in it, overflows, leads nowhere or is lost to
    /// whoever reads it by ear or by keyboard.
    pub(crate) fn assert_sound(&self) {
        assert_eq!(self.complaints, [""; 0]);
        for picture in &self.pictures {
            assert_eq!(picture, "", "a picture is not well-formed");
        }
        for frame in &self.frames {
            let number = |name: &str| frame[name].as_f64().unwrap();
            assert!(
                number("scroll") <= number("width"),
                "it overflows: {frame:#}"
            );
            assert!(number("smallest") >= 10.0, "it is too small: {frame:#}");
            for none in ["scripts", "handlers", "scopeless", "unreachable"] {
                assert_eq!(frame[none], 0, "{none}: {frame:#}");
            }
            assert_eq!(frame["styles"], 1, "{frame:#}");
            for empty in ["twice", "nowhere", "outside"] {
                assert_eq!(frame[empty], serde_json::json!([]), "{empty}: {frame:#}");
            }
        }
    }
}

fn escaped(text: &str) -> String {
    let text = text.replace('&', "&amp;").replace('"', "&quot;");
    text.replace('<', "&lt;")
}

/// Reads a text that was written as a part of an address, which no markup changes.
fn decoded(text: &str) -> String {
    let mut plain = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            plain.push(byte);
            continue;
        }
        let digits: Vec<u8> = bytes.by_ref().take(2).collect();
        let digits = String::from_utf8(digits).unwrap();
        plain.push(u8::from_str_radix(&digits, 16).unwrap());
    }
    String::from_utf8(plain).unwrap()
}
