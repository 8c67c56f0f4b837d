//! Published packages that repositories of the corpus are made of, fetched once by their own clients.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, ensure};
use serde::Deserialize;

use super::language::Language;
use super::project::{BaseProject, Files};
use crate::corpora::case_directory::CaseDirectory;
use crate::corpora::fetch::PackageClient;
use crate::tool::find;

/// The list, from the top of the repository.
const LIST: &str = "xtask/corpus/integration.toml";
/// The longest that one package may take.
const FETCHING: Duration = Duration::from_secs(300);
/// The most files that are taken of a package.
const FILES_MAX: usize = 60;
/// The largest file that is taken.
const FILE_BYTES_MAX: u64 = 256 << 10;
/// How deep directories are looked into.
const DEPTH_MAX: usize = 6;

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PackageList {
    package: Vec<PublishedPackage>,
}

/// One package.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PublishedPackage {
    client: PackageClient,
    package: String,
    version: String,
    language: Language,
    /// The file that changes are made to.
    code: String,
}

/// Fetches every package that is not there yet, and reads it.
///
/// # Errors
/// When a package cannot be had, or is not as the list says.
pub(super) fn load(root: &Path, location: &Path) -> anyhow::Result<Vec<BaseProject>> {
    let reading = || format!("read {LIST}");
    let text = fs::read_to_string(root.join(LIST)).with_context(reading)?;
    let list: PackageList = toml::from_str(&text).with_context(reading)?;
    let packages = list.package.iter();
    packages.map(|package| package.project(location)).collect()
}

impl PublishedPackage {
    fn project(&self, location: &Path) -> anyhow::Result<BaseProject> {
        let name = format!("{} {} {}", self.client.name(), self.package, self.version);
        let cache = self
            .fetch(location)
            .with_context(|| format!("fetch {name}"))?;
        let mut files = Files::new();
        collect(&cache, &cache, DEPTH_MAX, &mut files)?;
        ensure!(
            files.contains_key(&self.code),
            "use {name}: it has no file {}",
            self.code
        );
        Ok(BaseProject {
            name,
            language: self.language,
            files,
            code: self.code.clone(),
        })
    }

    fn fetch(&self, location: &Path) -> anyhow::Result<PathBuf> {
        find(self.client.program()).with_context(|| format!("find {}", self.client.program()))?;
        let name = format!("{}-{}-{}", self.client.name(), self.package, self.version);
        let name = name.replace('/', "-");
        let cache = location.join("packages").join(&name);
        if cache.is_dir() {
            return Ok(cache);
        }
        let directory = CaseDirectory::new(&location.join("cases"), &name, false)?;
        let shell = directory.shell(FETCHING).with_client_settings();
        let script = self.client.script(&self.package, &self.version, "fetched");
        shell.must(&script)?;
        fs::create_dir_all(location.join("packages"))?;
        fs::rename(directory.repository().join("fetched"), &cache)?;
        Ok(cache)
    }
}

/// Takes the texts of a directory in the order of their names, the code among them.
fn collect(top: &Path, directory: &Path, depth: usize, files: &mut Files) -> anyhow::Result<()> {
    let reading = || format!("read {}", directory.display());
    let mut paths = Vec::new();
    for entry in fs::read_dir(directory).with_context(reading)? {
        paths.push(entry.with_context(reading)?.path());
    }
    paths.sort();
    for path in paths {
        let found = fs::symlink_metadata(&path)?;
        if found.is_dir() && depth > 0 {
            collect(top, &path, depth - 1, files)?;
        } else if found.is_file() && found.len() <= FILE_BYTES_MAX && files.len() < FILES_MAX {
            let name = path.strip_prefix(top)?.display().to_string();
            let is_plain = name.bytes().all(|b| b.is_ascii_graphic() && b != b'"');
            let is_of_git = name
                .rsplit('/')
                .next()
                .is_some_and(|it| it.starts_with(".git"));
            match fs::read_to_string(&path) {
                Ok(text) if is_plain && !is_of_git && text.ends_with('\n') => {
                    files.insert(name, text.replace("\r\n", "\n"));
                }
                // What is no text is left out.
                Ok(_) | Err(_) => {}
            }
        }
    }
    Ok(())
}
