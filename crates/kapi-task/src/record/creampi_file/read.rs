//! From the text of the file to typed values, each with its line; all faults are found at once.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use kapi_settings::fault::{Faults, SettingsFault};
use kapi_settings::jsonc;
use kapi_settings::scalar::{NumberText, TrimmedText};
use kapi_settings::setting::Setting;
use serde::Deserialize;

use crate::record::creampi_file::directory::inside;
use crate::record::creampi_file::{Backend, CreampiConfig, root_of};

/// The longest day, in seconds.
const DAY_S: u32 = 86_400;
/// How many tasks may run at once.
const CONCURRENCY: RangeInclusive<u32> = 1..=32;

/// The file as it is written. Numbers may stand in quotes: oh-my-creampi takes both.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CreampiForm {
    default_agent: Option<Setting<TrimmedText>>,
    default_backend: Option<Setting<TrimmedText>>,
    default_model: Option<Setting<TrimmedText>>,
    max_concurrency: Option<Setting<NumberText>>,
    default_timeout_sec: Option<Setting<NumberText>>,
    guardrails_dir: Option<Setting<TrimmedText>>,
    idempotency_dir: Option<Setting<TrimmedText>>,
    idempotency_ttl_sec: Option<Setting<NumberText>>,
    checkpoints_dir: Option<Setting<TrimmedText>>,
    backends: BTreeMap<String, Setting<CreampiBackendForm>>,
}

#[derive(Deserialize)]
struct CreampiBackendForm {
    provider: TrimmedText,
    model: TrimmedText,
}

/// Reads the whole file.
pub(super) fn read(text: &str, file: &Path) -> Result<CreampiConfig, Vec<SettingsFault>> {
    let mut faults = Faults::of(file.display().to_string());
    let root = jsonc::parse(text, &mut faults);
    let form = root.and_then(|root| kapi_settings::read::read(&root, &mut faults));
    let config = form.map(|form| config(form, file, &mut faults));
    faults.instead_of(config)
}

fn config(form: CreampiForm, file: &Path, faults: &mut Faults) -> CreampiConfig {
    let root = root_of(file);
    let text =
        |said: Option<Setting<TrimmedText>>| said.map(|said| said.with(said.value.0.clone()));
    let mut backends = BTreeMap::new();
    for (name, said) in form.backends {
        if name.trim().is_empty() {
            let remedy = "name the backend, such as \"pi\"";
            faults.at(&said, "a backend name is empty", remedy);
        }
        let backend = Backend {
            provider: said.value.provider.0.clone(),
            model: said.value.model.0.clone(),
        };
        backends.insert(name, said.with(backend));
    }
    CreampiConfig {
        file: file.to_path_buf(),
        default_agent: text(form.default_agent),
        default_backend: text(form.default_backend),
        default_model: text(form.default_model),
        max_concurrency: count(form.max_concurrency, CONCURRENCY, faults),
        default_timeout_s: count(form.default_timeout_sec, 0..=DAY_S, faults),
        guardrails_dir: directory(form.guardrails_dir, &root, faults),
        idempotency_dir: directory(form.idempotency_dir, &root, faults),
        idempotency_ttl_s: count(form.idempotency_ttl_sec, 1..=DAY_S, faults),
        checkpoints_dir: directory(form.checkpoints_dir, &root, faults),
        backends,
        root,
    }
}

fn count(
    said: Option<Setting<NumberText>>,
    range: RangeInclusive<u32>,
    faults: &mut Faults,
) -> Option<Setting<u32>> {
    let said = said?;
    let number = said.value.0.parse().ok();
    let number = number.filter(|number| range.contains(number));
    if number.is_none() {
        let what = format!("{} is out of range", said.value.0);
        let (least, most) = (range.start(), range.end());
        faults.at(
            &said,
            what,
            format!("give a whole number from {least} to {most}"),
        );
    }
    Some(said.with(number?))
}

fn directory(
    said: Option<Setting<TrimmedText>>,
    root: &Path,
    faults: &mut Faults,
) -> Option<Setting<PathBuf>> {
    let said = said?;
    match inside(root, &said.value.0) {
        Ok(directory) => Some(said.with(directory)),
        Err(why) => {
            let what = format!("{:?} {why}", said.value.0);
            faults.at(&said, what, "name a directory inside the project");
            None
        }
    }
}
