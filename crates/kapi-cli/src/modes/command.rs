//! The commands of the modes, made of the list of modes.
//!
//! What a command's options mean stands with its mode.

use crate::args::deferred::DeferredArgs;
use crate::context::Context;
use crate::error::Error;
use crate::exit_code::Exit;

/// Makes of the list a command for each mode.
macro_rules! commands {
    ($($(#[$about:meta])* $mode:ident in $folder:ident;)+) => {
        /// The commands of the modes.
        #[derive(Debug, clap::Subcommand)]
        pub(crate) enum ModeVerb {
            $($(#[$about])* $mode(DeferredArgs<Box<crate::modes::$folder::Args>>),)+
        }

        /// Runs the command of a mode.
        pub(crate) fn run(context: &Context, command: &ModeVerb) -> Result<Exit, Error> {
            match command {
                $(ModeVerb::$mode(args) => crate::modes::$folder::run(context, args),)+
            }
        }
    };
}

every_mode!(commands);
