//! The files of a release: an archive of the program with its manual, a Debian package, the install
//! script, and the checksums of all of them.
//!
//! What stands in the manual and the completions is asked of the program that is packed. Publishes
//! nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use kapi_sys::disk::replace_durably;
use kapi_sys::real_disk::RealDisk;

use crate::tool::ToolCommand;

/// The documents that every package brings.
const DOCUMENTS: &[&str] = &["README.md", "LICENSE-APACHE", "LICENSE-MIT", "CHANGELOG.md"];
/// Where each shell looks for completions that a package brings.
const COMPLETIONS: &[(&str, &str)] = &[
    ("bash", "usr/share/bash-completion/completions/kapi"),
    ("zsh", "usr/share/zsh/vendor-completions/_kapi"),
    ("fish", "usr/share/fish/vendor_completions.d/kapi.fish"),
];

/// What is packed, and where the packages go.
#[derive(Debug)]
pub(crate) struct Release<'a> {
    /// The workspace.
    pub(crate) root: &'a Path,
    /// The program.
    pub(crate) program: &'a Path,
    /// Its version.
    pub(crate) version: &'a str,
    /// The kind of machine that it is for, as `uname` says it.
    pub(crate) arch: &'a str,
    /// A directory for the packages; what is there is replaced.
    pub(crate) out: &'a Path,
}

impl Release<'_> {
    /// Makes every file of the release and returns their names.
    ///
    /// # Errors
    /// When a tool is missing or fails.
    pub(crate) fn make(&self) -> anyhow::Result<Vec<String>> {
        if self.out.exists() {
            fs::remove_dir_all(self.out)
                .with_context(|| format!("remove {}", self.out.display()))?;
        }
        let work = self.out.join("work");
        create_dir(&work)?;
        let manual = self.manual(&work)?;
        let archive = self.archive(&work, &manual)?;
        let debian = self.debian(&work, &manual)?;
        install(
            &self.root.join("dist/install.sh"),
            &self.out.join("install.sh"),
            0o755,
        )?;
        fs::remove_dir_all(&work).context("remove the working directory")?;
        let names = vec![archive, debian, "install.sh".to_owned()];
        let words: Vec<&str> = names.iter().map(String::as_str).collect();
        let sums = ToolCommand::new(self.out, "sha256sum", &words).read()?;
        write(&self.out.join("SHA256SUMS"), sums.as_bytes())?;
        Ok([names, vec!["SHA256SUMS".to_owned()]].concat())
    }

    /// Has the program write its manual, and compresses it as manuals are installed.
    fn manual(&self, work: &Path) -> anyhow::Result<PathBuf> {
        let dir = work.join("man");
        create_dir(&dir)?;
        self.ask(&["__manual", &text(&dir)?])?;
        let pages = names(&dir)?;
        if pages.is_empty() {
            bail!("write the manual: {} wrote no page", self.program.display());
        }
        let words: Vec<&str> = ["-9", "-n"]
            .into_iter()
            .chain(pages.iter().map(String::as_str))
            .collect();
        ToolCommand::new(&dir, "gzip", &words).run()?;
        Ok(dir)
    }

    fn archive(&self, work: &Path, manual: &Path) -> anyhow::Result<String> {
        let Self { version, arch, .. } = self;
        let name = format!("kapi-{version}-{arch}-linux");
        let dir = work.join(&name);
        create_dir(&dir.join("man"))?;
        install(self.program, &dir.join("kapi"), 0o755)?;
        for page in names(manual)? {
            install(&manual.join(&page), &dir.join("man").join(&page), 0o644)?;
        }
        for document in DOCUMENTS {
            install(&self.root.join(document), &dir.join(document), 0o644)?;
        }
        let archive = format!("{name}.tar.gz");
        let file = text(&self.out.join(&archive))?;
        let time = format!("--mtime=@{}", self.time()?);
        let same = [
            "--sort=name",
            "--owner=0",
            "--group=0",
            "--numeric-owner",
            &time,
        ];
        let words = [&same[..], &["-czf", &file, &name]].concat();
        ToolCommand::new(work, "tar", &words).run()?;
        Ok(archive)
    }

    fn debian(&self, work: &Path, manual: &Path) -> anyhow::Result<String> {
        let tree = work.join("debian");
        install(self.program, &tree.join("usr/bin/kapi"), 0o755)?;
        for page in names(manual)? {
            let place = tree.join("usr/share/man/man1").join(&page);
            install(&manual.join(&page), &place, 0o644)?;
        }
        for (shell, place) in COMPLETIONS {
            let script = self.ask(&["completion", shell])?;
            let place = tree.join(place);
            create_dir(place.parent().unwrap_or(&tree))?;
            write(&place, script.as_bytes())?;
        }
        let documents = tree.join("usr/share/doc/kapi");
        for document in DOCUMENTS {
            install(&self.root.join(document), &documents.join(document), 0o644)?;
        }
        let licences = ["LICENSE-MIT", "LICENSE-APACHE"].map(|name| {
            let path = self.root.join(name);
            fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))
        });
        let [mit, apache] = licences;
        let copyright = format!("License: MIT OR Apache-2.0\n\n{}\n\n{}", mit?, apache?);
        write(&documents.join("copyright"), copyright.as_bytes())?;
        create_dir(&tree.join("DEBIAN"))?;
        write(
            &tree.join("DEBIAN/control"),
            self.control(&tree)?.as_bytes(),
        )?;
        let arch = debian_arch(self.arch)?;
        let name = format!("kapi_{}_{arch}.deb", self.version);
        let file = text(&self.out.join(&name))?;
        let (from, time) = (text(&tree)?, self.time()?);
        let words = ["--root-owner-group", "--build", &from, &file];
        let tool = ToolCommand::new(work, "dpkg-deb", &words).without_stdout();
        tool.env("SOURCE_DATE_EPOCH", time).run()?;
        Ok(name)
    }

    /// Returns what a Debian package says of itself. Who makes it is its maintainer.
    fn control(&self, tree: &Path) -> anyhow::Result<String> {
        let of_git = |key| ToolCommand::new(self.root, "git", &["config", key]).read();
        let (name, email) = (of_git("user.name")?, of_git("user.email")?);
        let size = ToolCommand::new(tree, "du", &["-sk", "usr"]).read()?;
        let size = size.split_whitespace().next().unwrap_or("0");
        let arch = debian_arch(self.arch)?;
        Ok(format!(
            "Package: kapi\nVersion: {}\nArchitecture: {arch}\nMaintainer: {} <{}>\n\
             Installed-Size: {size}\nDepends: git\nRecommends: tmux\nSection: devel\n\
             Priority: optional\nDescription: run coding agents unattended and get proved commits\n \
             Claude Code, Codex, Gemini, Pi or any other program works on a task in a sandbox.\n \
             The result is a branch that was verified in a clean checkout, or a report.\n",
            self.version,
            name.trim(),
            email.trim()
        ))
    }

    /// Returns the time of the commit that is packed, so that the same commit makes the same files.
    fn time(&self) -> anyhow::Result<String> {
        let time = ToolCommand::new(self.root, "git", &["log", "-1", "--format=%ct"]).read()?;
        Ok(time.trim().to_owned())
    }

    fn ask(&self, words: &[&str]) -> anyhow::Result<String> {
        ToolCommand::new(self.root, &text(self.program)?, words).read()
    }
}

/// Returns what Debian calls a kind of machine.
fn debian_arch(arch: &str) -> anyhow::Result<&'static str> {
    match arch {
        "x86_64" => Ok("amd64"),
        "aarch64" => Ok("arm64"),
        _ => bail!("pack for {arch}: Debian's name for it is not known here"),
    }
}

fn names(dir: &Path) -> anyhow::Result<Vec<String>> {
    let entries = fs::read_dir(dir).with_context(|| format!("list {}", dir.display()))?;
    let mut names = Vec::new();
    for entry in entries {
        names.push(entry?.file_name().to_string_lossy().into_owned());
    }
    names.sort();
    Ok(names)
}

fn install(from: &Path, to: &Path, mode: u32) -> anyhow::Result<()> {
    create_dir(to.parent().unwrap_or(to))?;
    fs::copy(from, to).with_context(|| format!("copy {} to {}", from.display(), to.display()))?;
    let permissions = fs::Permissions::from_mode(mode);
    fs::set_permissions(to, permissions)
        .with_context(|| format!("set the mode of {}", to.display()))
}

fn create_dir(dir: &Path) -> anyhow::Result<()> {
    fs::create_dir_all(dir).with_context(|| format!("create {}", dir.display()))
}

fn write(path: &Path, bytes: &[u8]) -> anyhow::Result<()> {
    replace_durably(&RealDisk, path, bytes).with_context(|| format!("write {}", path.display()))
}

fn text(path: &Path) -> anyhow::Result<String> {
    let text = path.to_str().map(str::to_owned);
    text.with_context(|| format!("read {} as UTF-8", path.display()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;
    use std::path::Path;

    use super::Release;
    use crate::tool::ToolCommand;

    /// Stands for the program: it has a manual, completions and a version.
    const PROGRAM: &str = "#!/bin/sh\ncase $1 in\n__manual) echo '.TH kapi 1' > \"$2/kapi.1\" ;;\n\
        completion) echo \"# $2\" ;;\n*) echo 'kapi 1.2.3' ;;\nesac\n";

    fn made(out: &Path, program: &Path) -> Vec<String> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let release = Release {
            root,
            program,
            version: "1.2.3",
            arch: "x86_64",
            out,
        };
        release.make().unwrap()
    }

    #[test]
    fn a_release_holds_the_program_its_manual_completions_and_checksums() {
        let dir = tempfile::tempdir().unwrap();
        let program = dir.path().join("program");
        super::write(&program, PROGRAM.as_bytes()).unwrap();
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).unwrap();
        let out = dir.path().join("out");
        let names = made(&out, &program);
        let (archive, debian) = ("kapi-1.2.3-x86_64-linux.tar.gz", "kapi_1.2.3_amd64.deb");
        assert_eq!(names, [archive, debian, "install.sh", "SHA256SUMS"]);
        let read = |tool: &str, words: &[&str]| ToolCommand::new(&out, tool, words).read().unwrap();
        read("sha256sum", &["--check", "--strict", "SHA256SUMS"]);
        let held = read("tar", &["-tzf", archive]);
        for path in ["kapi", "man/kapi.1.gz", "LICENSE-MIT"] {
            assert!(
                held.contains(&format!("kapi-1.2.3-x86_64-linux/{path}\n")),
                "{held}"
            );
        }
        let control = read("dpkg-deb", &["--field", debian]);
        for field in [
            "Package: kapi\n",
            "Version: 1.2.3\n",
            "Architecture: amd64\n",
        ] {
            assert!(control.contains(field), "{control}");
        }
        let held = read("dpkg-deb", &["--contents", debian]);
        for path in [
            "-rwxr-xr-x root/root",
            "./usr/bin/kapi\n",
            "./usr/share/man/man1/kapi.1.gz\n",
            "./usr/share/bash-completion/completions/kapi\n",
            "./usr/share/doc/kapi/copyright\n",
        ] {
            assert!(held.contains(path), "{path} in {held}");
        }
        // The same program and commit make the same files.
        let sums = fs::read(out.join("SHA256SUMS")).unwrap();
        made(&out, &program);
        assert_eq!(fs::read(out.join("SHA256SUMS")).unwrap(), sums);
    }
}
