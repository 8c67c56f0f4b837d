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
            needs.of_environment(tree, at, project);
        }
        if at.ends_with("node_modules") {
            needs.of_packages(tree, at, project);
        }
        needs
    }

    fn of_environment(&mut self, tree: &Path, at: &Path, project: &Path) {
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
            self.follow(at.join("bin").join(name), at, &readable);
        }
        for site in site_packages(tree) {
            self.editable(&site, at, project);
        }
    }

    /// Follows a link out of an environment, and notes each installation on the way.
    fn follow(&mut self, link: PathBuf, environment: &Path, readable: &dyn Fn(&Path) -> PathBuf) {
        let mut link = link;
        for _ in 0..LINKS_MAX {
            let target = fs::read_link(readable(&link)).ok();
            let next = target.and_then(|target| lexical(&link.parent()?.join(target)));
            let Some(next) = next else {
                return;
            };
            let outside = next.parent().filter(|_| !next.starts_with(environment));
            if let Some(bin) = outside {
                self.interpreter(bin);
            }
            link = next;
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

    fn editable(&mut self, site: &Path, environment: &Path, project: &Path) {
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
            let is_elsewhere = |path: &&Path| {
                path.is_absolute()
                    && !path.starts_with(environment)
                    && !path.starts_with(project)
                    && path.exists()
            };
            let elsewhere = paths.iter().map(Path::new).filter(is_elsewhere);
            self.packages
                .extend(elsewhere.map(|path| (name.clone(), path.to_path_buf())));
        }
    }

    fn of_packages(&mut self, tree: &Path, at: &Path, project: &Path) {
        // Where a link leads to from its own place, wherever it is read.
        let real = |path: &Path| {
            let target = fs::read_link(tree.join(path)).ok()?;
            let from = at.join(path);
            let real = from.parent()?.join(target).canonicalize().ok()?;
            (!real.starts_with(project) && !real.starts_with(at)).then_some(real)
        };
        let names = names(tree);
        let scopes = names.iter().filter(|name| name.starts_with('@'));
        let scoped = scopes.flat_map(|scope| {
            let inner = self::names(&tree.join(scope));
            inner.into_iter().map(move |name| format!("{scope}/{name}"))
        });
        let all: Vec<String> = scoped.chain(names.iter().cloned()).collect();
        let linked = all.into_iter().filter_map(|name| {
            let real = real(Path::new(&name))?;
            Some((name, real))
        });
        self.packages.extend(linked);
    }
}

fn names(directory: &Path) -> Vec<String> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let entries = entries.take(ENTRIES_MAX);
    entries
        .filter_map(|entry| entry.file_name().into_string().ok())
        .collect()
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
    use std::path::Path;

    use kapi_sys::disk::Disk as _;
    use kapi_sys::real_disk::RealDisk;

    use super::Needs;

    fn write(path: &Path, text: &str) {
        RealDisk.write(path, text.as_bytes()).unwrap();
    }

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
        write(&python.join("bin/python3.12"), "");
        symlink("3.12.1", top.join("pythons/3.12")).unwrap();
        let called = top.join("pythons/3.12/bin");
        write(
            &venv.join("pyvenv.cfg"),
            &format!("home = {}\n", called.display()),
        );
        symlink(called.join("python3.12"), venv.join("bin/python")).unwrap();
        symlink("python", venv.join("bin/python3")).unwrap();
        let text = format!(
            "{}\n{}\nimport x\n",
            project.join("src").display(),
            other.display()
        );
        write(&site.join("a.pth"), &text);
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
