//! The program `kapi`. Everything it does is in the library beside it.

use std::process::ExitCode;

fn main() -> ExitCode {
    kapi_cli::main()
}
