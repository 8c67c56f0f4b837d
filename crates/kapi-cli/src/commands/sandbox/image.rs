//! `kapi sandbox image`: makes the image that containers take their root from.
//!
//! The Containerfile comes with Kapi; a person may give a directory of their own instead.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use kapi_sandbox::podman::image::{self, Build, ImageSource};
use kapi_sys::process::OutputLine;
use serde::Serialize;

use crate::container::{self, IMAGE_DEFAULT};
use crate::context::Context;
use crate::driving;
use crate::error::Error;
use crate::exit_code::Exit;
use crate::ui::Format;

/// The argument of the Containerfile that names what it begins with.
const BASE: &str = "BASE";

/// Options of `kapi sandbox image`.
#[derive(Debug, Clone, clap::Args)]
pub(crate) struct Args {
    /// Name of the image
    #[arg(long, value_name = "NAME", default_value = IMAGE_DEFAULT, value_parser = NonEmptyStringValueParser::new())]
    tag: String,
    /// Base image [default: the Containerfile's]
    #[arg(long, value_name = "IMAGE", value_parser = NonEmptyStringValueParser::new())]
    base: Option<String>,
    /// Build argument: AGENTS, PACKAGES, JAVA_PACKAGES or NODE_PACKAGES (repeatable)
    #[arg(long = "build-arg", value_name = "NAME=VALUE", value_parser = pair)]
    build_args: Vec<(String, String)>,
    /// Directory with your own Containerfile [default: the built-in one]
    #[arg(long, value_name = "DIR")]
    directory: Option<PathBuf>,
    /// Print the build command and the Containerfile, without building
    #[arg(long)]
    dry_run: bool,
}

#[derive(Debug, Serialize)]
struct ImageView<'a> {
    dry_run: bool,
    image: &'a str,
    /// The command and, for the shipped image, the Containerfile.
    build: &'a str,
    /// What to put into the configuration.
    config: &'a str,
}

/// Builds the image.
pub(crate) fn run(context: &Context, args: &Args) -> Result<Exit, Error> {
    context.require_human("build an image")?;
    let ui = context.ui;
    let build = wanted(context, args)?;
    let description = image::describe(&build).map_err(|error| container::refused(&error))?;
    // A name that was accepted has no character that TOML would read otherwise.
    let config = format!("[sandbox]\nimage = \"{}\"", build.tag);
    if !args.dry_run {
        let interrupts = driving::interrupts()?;
        let mut on_line = |line: OutputLine<'_>| match line {
            OutputLine::Stdout(bytes) | OutputLine::Stderr(bytes) => {
                ui.say(String::from_utf8_lossy(bytes).trim_end());
            }
        };
        image::build(&build, &interrupts.cancel(), &mut on_line)
            .map_err(|error| container::refused(&error))?;
    }
    match ui.format {
        Format::Json => ui.json(&ImageView {
            dry_run: args.dry_run,
            image: &build.tag,
            build: &description,
            config: &config,
        }),
        Format::Human if args.dry_run => ui.page(description.trim_end()),
        Format::Human => {
            ui.line(&format!("Built {}.", build.tag));
            ui.line(&format!(
                "To use it, add this to {}:\n\n{config}\n\nThen: kapi run --sandbox podman …",
                context.config_path.display()
            ));
        }
    }
    Ok(Exit::Success)
}

/// Returns what was asked for.
fn wanted(context: &Context, args: &Args) -> Result<Build, Error> {
    let mut values = BTreeMap::new();
    let base = args.base.clone().map(|base| (BASE.to_owned(), base));
    for (name, value) in args.build_args.iter().cloned().chain(base) {
        if values.insert(name.clone(), value).is_some() {
            return Err(Error::usage(format!("{name} is set twice"))
                .with_hint("`--base IMAGE` is the same as `--build-arg BASE=IMAGE`."));
        }
    }
    let source = match &args.directory {
        None => ImageSource::Shipped,
        Some(directory) => {
            let directory = context.cwd.join(directory);
            if !directory.join("Containerfile").is_file() {
                let text = format!("there is no Containerfile in {}", directory.display());
                return Err(Error::usage(text));
            }
            ImageSource::Directory(directory)
        }
    };
    Ok(Build {
        tag: args.tag.clone(),
        source,
        args: values,
    })
}

/// Reads `NAME=VALUE`.
fn pair(text: &str) -> Result<(String, String), String> {
    let (name, value) = text
        .split_once('=')
        .ok_or_else(|| "write it as NAME=VALUE".to_owned())?;
    Ok((name.to_owned(), value.to_owned()))
}
