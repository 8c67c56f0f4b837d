//! Options of a command that are built once the command is typed.
//!
//! Building those of all commands takes longer than most commands do.

use std::ops::Deref;

use clap::builder::Resettable;
use clap::{ArgMatches, Args, Command, Error, FromArgMatches};

/// The options of a command, which a command line does not have before that command is looked for.
///
/// What the command says of itself stays as it was before: each list of commands shows it.
#[derive(Debug)]
pub(crate) struct DeferredArgs<T>(T);

impl<T> DeferredArgs<T> {
    /// Returns the options.
    pub(crate) fn into_inner(self) -> T {
        self.0
    }
}

impl<T> Deref for DeferredArgs<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T: FromArgMatches> FromArgMatches for DeferredArgs<T> {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, Error> {
        T::from_arg_matches(matches).map(Self)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        self.0.update_from_arg_matches(matches)
    }
}

impl<T: Args> Args for DeferredArgs<T> {
    fn augment_args(command: Command) -> Command {
        command.defer(|command| with_its_about(command, T::augment_args))
    }

    fn augment_args_for_update(command: Command) -> Command {
        command.defer(|command| with_its_about(command, T::augment_args_for_update))
    }
}

/// Adds options to a command, and puts back what it said of itself, which they replace.
fn with_its_about(command: Command, add: fn(Command) -> Command) -> Command {
    let about = command.get_about().cloned();
    let long_about = command.get_long_about().cloned();
    with_negative_numbers(add(command))
        .about(Resettable::from(about))
        .long_about(Resettable::from(long_about))
}

/// Has a negative number read as a value, so that what is said of it is that it is too small, and not
/// that there is no such option.
fn with_negative_numbers(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        let takes_values = arg.get_action().takes_values();
        arg.allow_negative_numbers(takes_values)
    });
    command.mut_subcommands(with_negative_numbers)
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, Parser as _};

    use crate::args::Args;
    use crate::command_line;

    #[test]
    fn a_command_has_its_options_and_its_own_words_once_it_is_built() {
        let options = |command: &clap::Command| {
            let resume = command.find_subcommand("resume").unwrap();
            let about = resume.get_about().unwrap().to_string();
            (about, resume.get_arguments().count())
        };
        let (about, n_options) = options(&Args::command());
        assert_eq!(n_options, 0, "the options of a command are built at once");
        let (built, n_options) = options(&command_line());
        assert_eq!(built, about);
        assert!(n_options > 0);
        assert!(Args::try_parse_from(["kapi", "resume", "--nonsense"]).is_err());
    }
}
