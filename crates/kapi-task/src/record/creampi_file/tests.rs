//! Tests of reading `.pi/oh-my-creampi.jsonc`.

use std::path::{Path, PathBuf};

use kapi_settings::fault::SettingsFault;
use kapi_sys::disk::Disk as _;
use kapi_sys::real_disk::RealDisk;
use kapi_sys::sim_disk::SimDisk;

use crate::record::creampi_file::{
    Backend, CreampiConfig, CreampiError, FILE, PLAIN_FILE, find, load, parse,
};

/// The example of the specification.
const SPEC: &str = r#"{
  // Agent defaults
  "defaultAgent": "sisyphus",
  "defaultBackend": "pi",
  "defaultModel": "gpt-5.3-codex",

  // Concurrency
  "maxConcurrency": 3,
  "defaultTimeoutSec": 300,

  // Guardrails
  "guardrailsDir": ".creampi/guardrails",
  
  // Idempotency
  "idempotencyDir": ".creampi/idempotency",
  "idempotencyTtlSec": 600,

  // Loop checkpoints
  "checkpointsDir": ".creampi/checkpoints",

  // Backend overrides
  "backends": {
    "pi": { "provider": "openai-codex", "model": "gpt-5.3-codex" },
    "claude": { "provider": "anthropic", "model": "claude-opus-4-6" },
    "codex": { "provider": "openai-codex", "model": "codex-5.3" }
  }
}
"#;

fn file() -> PathBuf {
    Path::new("/p").join(FILE)
}

fn read(text: &str) -> CreampiConfig {
    parse(text, &file()).unwrap()
}

/// Returns the faults without the file.
fn faults(text: &str) -> Vec<String> {
    let Err(CreampiError::Invalid { faults }) = parse(text, &file()) else {
        panic!("{text} is fine");
    };
    let file = file().display().to_string();
    let words = |fault: &SettingsFault| fault.to_string().replace(&file, "f");
    faults.iter().map(words).collect()
}

#[test]
fn the_specs_example_is_read_with_its_places() {
    let config = read(SPEC);
    assert_eq!(config.root, Path::new("/p"));
    let agent = config.default_agent.unwrap();
    assert_eq!(agent.value, "sisyphus");
    assert_eq!((agent.key.as_str(), agent.line), ("defaultAgent", 3));
    assert_eq!(config.default_backend.unwrap().value, "pi");
    assert_eq!(config.default_model.unwrap().value, "gpt-5.3-codex");
    let concurrency = config.max_concurrency.unwrap();
    assert_eq!((concurrency.value, concurrency.line), (3, 8));
    assert_eq!(config.default_timeout_s.unwrap().value, 300);
    let directory = config.guardrails_dir.unwrap();
    assert_eq!(directory.value, Path::new("/p/.creampi/guardrails"));
    assert_eq!(directory.line, 12);
    assert_eq!(
        config.idempotency_dir.unwrap().value,
        Path::new("/p/.creampi/idempotency")
    );
    assert_eq!(config.idempotency_ttl_s.unwrap().value, 600);
    assert_eq!(
        config.checkpoints_dir.unwrap().value,
        Path::new("/p/.creampi/checkpoints")
    );
    let names: Vec<&String> = config.backends.keys().collect();
    assert_eq!(names, ["claude", "codex", "pi"]);
    let claude = &config.backends["claude"];
    let expected = Backend {
        provider: "anthropic".to_owned(),
        model: "claude-opus-4-6".to_owned(),
    };
    assert_eq!((&claude.value, claude.line), (&expected, 24));
}

#[test]
fn comments_commas_and_numbers_in_quotes_are_fine() {
    let config =
        read("\u{feff}/* a */{ // b\r\n\"maxConcurrency\": \"5\", /* \"x\": 1 */ }\r\n// c");
    let concurrency = config.max_concurrency.unwrap();
    assert_eq!((concurrency.value, concurrency.line), (5, 2));
    assert_eq!(config.default_agent, None);
    let text = r#"{"defaultModel": "http://x//y /* no comment */", "defaultTimeoutSec": 0,}"#;
    let config = read(text);
    assert_eq!(
        config.default_model.unwrap().value,
        "http://x//y /* no comment */"
    );
    assert_eq!(config.default_timeout_s.unwrap().value, 0);
}

#[test]
fn every_problem_is_named_with_its_place_and_remedy() {
    let text = r#"{
  "maxConcurency": 3,
  "maxConcurrency": 64,
  "defaultTimeoutSec": 1.5, "idempotencyTtlSec": 0,
  "défaut": 1,
  "defaultAgent": "", "defaultAgent": null,
  "guardrailsDir": "../elsewhere",
  "idempotencyDir": "/etc", "checkpointsDir": ".git/hooks",
  "backends": { "pi": { "provider": "x", "modle": "y" }, "codex": [] }
}"#;
    assert_eq!(
        faults(text),
        [
            "f:2: `maxConcurency`: unknown key; did you mean `maxConcurrency`?",
            "f:3: `maxConcurrency`: 64 is out of range; give a whole number from 1 to 32",
            "f:4: `defaultTimeoutSec`: 1.5 is out of range; give a whole number from 0 to 86400",
            "f:4: `idempotencyTtlSec`: 0 is out of range; give a whole number from 1 to 86400",
            "f:5: `défaut`: unknown key; use one of defaultAgent, defaultBackend, defaultModel, \
             maxConcurrency, defaultTimeoutSec, guardrailsDir, idempotencyDir, \
             idempotencyTtlSec, checkpointsDir, backends",
            "f:6: `defaultAgent` is set twice; remove one of them",
            "f:6: `defaultAgent`: it is empty; give a short text, or remove the key",
            "f:7: `guardrailsDir`: \"../elsewhere\" points outside the project; name a \
             directory inside the project",
            "f:8: `idempotencyDir`: \"/etc\" points outside the project; name a directory \
             inside the project",
            "f:8: `checkpointsDir`: \".git/hooks\" is git's own; name a directory inside the \
             project",
            "f:9: `backends.pi.modle`: unknown key; did you mean `backends.pi.model`?",
            "f:9: `backends.pi`: it has no `model`; add `model`",
            "f:9: `backends.codex`: it is a list; give a table of settings",
        ]
    );
}

#[test]
fn what_is_no_json_is_refused_where_it_goes_wrong() {
    for (text, start) in [
        ("{\n  \"a\" 1}", "f:2: "),
        ("{'defaultAgent': 1}", "f:1: "),
        ("{defaultAgent: 1}", "f:1: "),
        ("{\"maxConcurrency\": 0x3}", "f:1: "),
        ("{\"defaultAgent\": \"a\" \"defaultModel\": \"b\"}", "f:1: "),
        ("{ /* open", "f:1: "),
        ("", "f:1: it is empty"),
        ("// nothing", "f:1: it is empty"),
        ("[]", "f:1: it is a list; write an object in braces"),
    ] {
        let found = faults(text);
        assert_eq!(found.len(), 1, "{text}");
        assert!(found[0].starts_with(start), "{text}: {}", found[0]);
    }
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    assert_eq!(faults(&deep).len(), 1);
}

#[test]
fn directories_stay_inside_links_followed() {
    let dir = tempfile::tempdir().unwrap();
    let root = dir.path().join("project");
    RealDisk.create_dir(&root.join("kept")).unwrap();
    RealDisk.create_dir(&dir.path().join("outside")).unwrap();
    std::os::unix::fs::symlink("../outside", root.join("out")).unwrap();
    std::os::unix::fs::symlink("kept", root.join("in")).unwrap();
    std::os::unix::fs::symlink("../nowhere", root.join("dangling")).unwrap();
    let absolute = root.join("kept/x");
    for (written, expected) in [
        ("kept/new", Some("kept/new")),
        ("in/new", Some("in/new")),
        ("./a/../b", Some("b")),
        (absolute.to_str().unwrap(), Some("kept/x")),
        ("out", None),
        ("out/new", None),
        ("dangling/new", None),
        ("a/../..", None),
        (".", None),
        ("a/.GIT", None),
    ] {
        let text = format!("{{\"guardrailsDir\": \"{written}\"}}");
        let found = parse(&text, &root.join(FILE)).ok();
        let found = found.map(|config| config.guardrails_dir.unwrap().value);
        assert_eq!(found, expected.map(|path| root.join(path)), "{written}");
    }
}

#[test]
fn the_nearest_file_is_found_and_jsonc_goes_first() {
    let disk = SimDisk::new();
    disk.provide_dir(Path::new("/p"));
    let deep = Path::new("/p/a/b");
    assert_eq!(find(&disk, deep).unwrap(), None);
    let put = |path: PathBuf, text: &str| {
        disk.create_dir(path.parent().unwrap()).unwrap();
        disk.write(&path, text.as_bytes()).unwrap();
        path
    };
    let plain = put(Path::new("/p/a/b").join(PLAIN_FILE), "{}");
    assert_eq!(find(&disk, deep).unwrap(), Some(plain));
    let top = put(Path::new("/p").join(FILE), SPEC);
    assert_eq!(find(&disk, deep).unwrap(), Some(top.clone()));
    let near = put(Path::new("/p/a").join(FILE), "{}");
    assert_eq!(find(&disk, deep).unwrap(), Some(near));
    assert_eq!(load(&disk, &top).unwrap().unwrap(), read(SPEC));
    assert_eq!(load(&disk, Path::new("/p/none")).unwrap(), None);
}
