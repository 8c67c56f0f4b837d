//! What leads out of a directory of dependencies: an environment's interpreter, linked packages,
//! editable installs.
//!
//! Without what they lead to, such a directory is of no use inside. Reads names and small files of
//! the person's own project; decides nothing.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Links of links that are followed.
const LINKS_MAX: usize = 16;
/// Entries of one directory that are looked at.
const ENTRIES_MAX: usize = 10_000;
/// Bytes of a file that are read.
const FILE_BYTES_MAX: u64 = 64 << 10;

/// What a directory of dependencies needs besides itself.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Needs {
    /// Installations of interpreters.
    pub(super) installations: BTreeSet<PathBuf>,
    /// Packages elsewhere: what names each, and where it is.
    pub(super) packages: BTreeSet<(String, PathBuf)>,
}

impl Needs {
    /// Finds what the directory at a place leads to outside of itself and the project; `tree` is
    /// where it can be read.
    pub(super) fn of(tree: &Path, at: &Path, project: &Path) -> Self {
        let mut needs = Self::default();
        if tree.join("pyvenv.cfg").is_file() {
            needs.of_environment((tree, at), project);
        }
        if at.ends_with("node_modules") {
            needs.of_packages((tree, at), project);
        }
        needs
    }

    fn of_environment(&mut self, (tree, at): (&Path, &Path), project: &Path) {
        if let Some(text) = small_text(&tree.join("pyvenv.cfg")) {
            let settings = text.lines().filter_map(|line| line.split_once('='));
            let homes = settings.filter(|(key, _)| key.trim() == "home");
            for (_, home) in homes {
                self.interpreter(Path::new(home.trim()));
            }
        }
        let readable = |path: &Path| match path.strip_prefix(at) {
            Ok(below) => tree.join(below),
            Err(_) => path.to_path_buf(),
        };
        for name in ["python", "python3"] {
            let mut link = at.join("bin").join(name);
            for _ in 0..LINKS_MAX {
                let Ok(target) = fs::read_link(readable(&link)) else {
                    break;
                };
                let Some(next) = link.parent().and_then(|at| lexical(&at.join(target))) else {
                    break;
                };
                if let Some(bin) = next.parent()
                    && !next.starts_with(at)
                {
                    self.interpreter(bin);
                }
                link = next;
            }
        }
        for site in site_packages(tree) {
            self.editable(&site, (at, project));
        }
    }

    /// Notes the installation whose `bin` a directory is, under each of its names.
    fn interpreter(&mut self, bin: &Path) {
        let Some(root) = bin.parent().filter(|_| bin.is_absolute()) else {
            return;
        };
        self.installations.insert(root.to_path_buf());
        if let Ok(real) = bin.canonicalize()
            && let Some(real) = real.parent()
            && real != root
        {
            self.installations.insert(real.to_path_buf());
        }
    }

    fn editable(&mut self, site: &Path, (environment, project): (&Path, &Path)) {
        let entries = fs::read_dir(site).into_iter().flatten().flatten();
        for entry in entries.take(ENTRIES_MAX) {
            let name = entry.file_name().to_string_lossy().into_owned();
            let paths: Vec<String> = if name.ends_with(".pth") || name.ends_with(".egg-link") {
                let text = small_text(&entry.path()).unwrap_or_default();
                text.lines().map(str::trim).map(str::to_owned).collect()
            } else if name.starts_with("__editable__") && name.ends_with("_finder.py") {
                let text = small_text(&entry.path()).unwrap_or_default();
                text.split(['\'', '"']).map(str::to_owned).collect()
            } else {
                continue;
            };
            for path in paths.iter().map(Path::new) {
                let is_outside = !path.starts_with(environment) && !path.starts_with(project);
                if path.is_absolute() && is_outside && path.exists() {
                    self.packages.insert((name.clone(), path.to_path_buf()));
                }
            }
        }
    }

    fn of_packages(&mut self, (tree, at): (&Path, &Path), project: &Path) {
        let mut waiting = vec![String::new()];
        while let Some(scope) = waiting.pop() {
            let entries = fs::read_dir(tree.join(&scope))
                .into_iter()
                .flatten()
                .flatten();
            for entry in entries.take(ENTRIES_MAX) {
                let name = entry.file_name().to_string_lossy().into_owned();
                let Ok(kind) = entry.file_type() else {
                    continue;
                };
                if kind.is_dir() && name.starts_with('@') && scope.is_empty() {
                    waiting.push(format!("{name}/"));
                }
                // Where it leads to from its own place, wherever it is read.
                let real = fs::read_link(entry.path())
                    .ok()
                    .and_then(|target| at.join(&scope).join(target).canonicalize().ok());
                if let Some(real) = real.filter(|_| kind.is_symlink())
                    && !real.starts_with(project)
                    && !real.starts_with(at)
                {
                    self.packages.insert((format!("{scope}{name}"), real));
                }
            }
        }
    }
}

fn site_packages(environment: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(environment.join("lib")).into_iter().flatten();
    let sites = entries
        .flatten()
        .map(|entry| entry.path().join("site-packages"));
    sites.filter(|site| site.is_dir()).collect()
}

/// Resolves `..` without following links.
fn lexical(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                plain.pop().then_some(())?;
            }
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) | Component::Normal(_) => plain.push(part),
        }
    }
    Some(plain)
}

fn small_text(path: &Path) -> Option<String> {
    let found = fs::metadata(path).ok()?;
    (found.is_file() && found.len() <= FILE_BYTES_MAX).then_some(())?;
    fs::read_to_string(path).ok()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::fs;
    use std::os::unix::fs::symlink;

    use super::Needs;

    #[test]
    fn an_environment_leads_to_its_interpreter_and_to_editable_installs() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let (project, python) = (top.join("project"), top.join("pythons/3.12.1"));
        let (venv, other) = (project.join(".venv"), top.join("other"));
        let site = venv.join("lib/python3.12/site-packages");
        for dir in [
            &site,
            &venv.join("bin"),
            &python.join("bin"),
            &other,
            &project.join("src"),
        ] {
            fs::create_dir_all(dir).unwrap();
        }
        fs::write(python.join("bin/python3.12"), "").unwrap();
        symlink("3.12.1", top.join("pythons/3.12")).unwrap();
        let called = top.join("pythons/3.12/bin");
        fs::write(
            venv.join("pyvenv.cfg"),
            format!("home = {}\n", called.display()),
        )
        .unwrap();
        symlink(called.join("python3.12"), venv.join("bin/python")).unwrap();
        symlink("python", venv.join("bin/python3")).unwrap();
        let text = format!(
            "{}\n{}\nimport x\n",
            project.join("src").display(),
            other.display()
        );
        fs::write(site.join("a.pth"), text).unwrap();
        let needs = Needs::of(&venv, &venv, &project);
        let expected = BTreeSet::from([top.join("pythons/3.12"), python]);
        assert_eq!(needs.installations, expected);
        assert_eq!(
            needs.packages,
            BTreeSet::from([("a.pth".to_owned(), other)])
        );
    }

    #[test]
    fn linked_packages_are_those_that_lie_elsewhere() {
        let top = tempfile::tempdir().unwrap();
        let top = top.path().canonicalize().unwrap();
        let (project, linked) = (top.join("project"), top.join("linked"));
        let modules = project.join("node_modules");
        fs::create_dir_all(modules.join("@scope")).unwrap();
        fs::create_dir_all(project.join("packages/own")).unwrap();
        fs::create_dir_all(&linked).unwrap();
        symlink(&linked, modules.join("@scope/linked")).unwrap();
        symlink("../packages/own", modules.join("own")).unwrap();
        let needs = Needs::of(&modules, &modules, &project);
        let expected = BTreeSet::from([("@scope/linked".to_owned(), linked)]);
        assert_eq!(needs.packages, expected);
    }
}
