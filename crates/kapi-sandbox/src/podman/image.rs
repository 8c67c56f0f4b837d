//! Builds the image that containers take their root from.
//!
//! The Containerfile we ship is part of this program, so the binary alone can build it. Does not know
//! what is in it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

use kapi_sys::cancel::Cancel;
use kapi_sys::process::{self, OutputLine, ProcessEnd};

use super::cleanup::podman;
use super::error::PodmanError;
use super::host::PodmanHost;
use super::options::{check_host, check_image};
use super::run_directory::RunDirectory;

/// The Containerfile we ship.
pub const CONTAINERFILE: &str = include_str!("../../../../images/kapi/Containerfile");

/// How long a build may take.
const DEADLINE: Duration = Duration::from_secs(2 * 60 * 60);
/// How long a build may say nothing.
const IDLE: Duration = Duration::from_secs(20 * 60);
/// The name of the Containerfile in a directory.
const FILE: &str = "Containerfile";

/// What to build.
#[derive(Debug, Clone)]
pub struct Build {
    /// The image's name: `localhost/kapi:latest`.
    pub tag: String,
    /// What it is built from.
    pub source: ImageSource,
    /// Values for the Containerfile's arguments, as `BASE`.
    pub args: BTreeMap<String, String>,
}

/// What an image is built from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ImageSource {
    /// The Containerfile we ship, without any other file.
    Shipped,
    /// A directory of the person's with a `Containerfile`.
    Directory(PathBuf),
}

/// Returns the command that [`build`] would run and, for the shipped image, the Containerfile.
pub fn describe(build: &Build) -> Result<String, PodmanError> {
    let directory = match &build.source {
        ImageSource::Shipped => PathBuf::from("<an empty directory>"),
        ImageSource::Directory(directory) => directory.clone(),
    };
    let words = arguments(build, &directory)?;
    let words: Vec<String> = words
        .iter()
        .map(|word| word.to_string_lossy().into_owned())
        .collect();
    let command = format!("podman {}\n", words.join(" "));
    Ok(match &build.source {
        ImageSource::Shipped => format!("{command}\n{CONTAINERFILE}"),
        ImageSource::Directory(_) => command,
    })
}

/// Builds the image; `on_line` takes each line that podman says.
pub fn build(
    build: &Build,
    cancel: &Cancel,
    on_line: &mut dyn FnMut(OutputLine<'_>),
) -> Result<(), PodmanError> {
    let host = PodmanHost::observe()?;
    match &build.source {
        ImageSource::Directory(directory) => {
            check_host(directory)?;
            let args = arguments(build, directory)?;
            perform(&host, args, &[], cancel, on_line)
        }
        ImageSource::Shipped => {
            let directory = RunDirectory::new(&host, "image-build")?;
            let built = directory.context().and_then(|context| {
                let args = arguments(build, &context)?;
                perform(&host, args, CONTAINERFILE.as_bytes(), cancel, on_line)
            });
            let removed = directory.remove();
            built.and(removed)
        }
    }
}

fn perform(
    host: &PodmanHost,
    args: Vec<OsString>,
    stdin: &[u8],
    cancel: &Cancel,
    on_line: &mut dyn FnMut(OutputLine<'_>),
) -> Result<(), PodmanError> {
    let mut program = podman(host, stdin, args, DEADLINE);
    program.limits.idle = Some(IDLE);
    let finished = process::run(program, cancel, on_line).map_err(|source| PodmanError::Run {
        command: "build",
        source: Box::new(source),
    })?;
    match finished.end {
        ProcessEnd::Exited(0) => Ok(()),
        ProcessEnd::Exited(_) => Err(PodmanError::Said {
            command: "build",
            output: finished.stderr.text().trim().to_owned(),
        }),
        end => Err(PodmanError::Said {
            command: "build",
            output: format!("it did not end on its own: {end:?}"),
        }),
    }
}

fn arguments(build: &Build, directory: &std::path::Path) -> Result<Vec<OsString>, PodmanError> {
    check_image(&build.tag)?;
    let mut words: Vec<OsString> = vec!["build".into(), format!("--tag={}", build.tag).into()];
    for (name, value) in &build.args {
        let is_name =
            !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name || value.chars().any(char::is_control) {
            return Err(PodmanError::Refused {
                what: "build argument",
                value: name.clone(),
                why: "use letters, digits and _ in the name, and plain text in the value",
            });
        }
        words.push(format!("--build-arg={name}={value}").into());
    }
    words.push(match &build.source {
        ImageSource::Shipped => "--file=-".into(),
        ImageSource::Directory(directory) => {
            format!("--file={}", directory.join(FILE).display()).into()
        }
    });
    words.push(directory.as_os_str().to_os_string());
    Ok(words)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Build, ImageSource, describe};

    fn shipped(args: &[(&str, &str)]) -> Build {
        let args = args
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        Build {
            tag: "localhost/kapi:1".to_owned(),
            source: ImageSource::Shipped,
            args: args.collect::<BTreeMap<_, _>>(),
        }
    }

    #[test]
    fn a_description_is_the_command_and_the_file() {
        let text = describe(&shipped(&[("BASE", "debian:12")])).unwrap();
        let first = "podman build --tag=localhost/kapi:1 --build-arg=BASE=debian:12 --file=- <an empty directory>\n";
        assert!(text.starts_with(first), "{text}");
        assert!(text.contains("\nFROM ${BASE}\n"), "{text}");
    }

    #[test]
    fn nothing_in_a_build_becomes_another_option() {
        assert!(describe(&shipped(&[("A B", "x")])).is_err());
        assert!(describe(&shipped(&[("A", "x\ny")])).is_err());
        let mut bad = shipped(&[]);
        bad.tag = "--no-cache".to_owned();
        assert!(describe(&bad).is_err());
    }
}
