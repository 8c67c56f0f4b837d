//! Every command says in `docs/schemas/commands.json` what it prints with `--json`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use clap::Command;
use serde_json::Value;

use crate::command_line;

/// Returns the commands that can be typed as they stand, with the words before them.
fn typed(command: &Command, words: &str, found: &mut Vec<String>) {
    let is_help = |sub: &Command| sub.get_name() == "help";
    for sub in command
        .get_subcommands()
        .filter(|sub| !sub.is_hide_set() && !is_help(sub))
    {
        let words = format!("{words} {}", sub.get_name());
        let words = words.trim_start();
        if !sub.is_subcommand_required_set() {
            found.push(words.to_owned());
        }
        typed(sub, words, found);
    }
}

#[test]
fn every_command_names_what_it_prints() {
    let dir = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schemas");
    let read = |name: &str| fs::read_to_string(dir.join(name)).unwrap();
    let commands: BTreeMap<String, Vec<String>> =
        serde_json::from_str(&read("commands.json")).unwrap();
    let schemas: Value = serde_json::from_str(&read("kapi.schema.json")).unwrap();
    for name in commands.values().flatten() {
        assert!(schemas["$defs"][name].is_object(), "{name} is no schema");
    }
    let mut found = Vec::new();
    typed(&command_line(), "", &mut found);
    let missing: Vec<&String> = found
        .iter()
        .filter(|it| !commands.contains_key(*it))
        .collect();
    assert!(missing.is_empty(), "{missing:?}");
}
