//! Serves a scenario by hand: `cargo run -p kapi-testkit --example model_server -- scenario.json`
//! prints the base URL and serves until its standard input ends.

use std::io::{self, Read as _, Write as _};
use std::{env, error, fs};

use kapi_testkit::model_server::ModelServer;
use kapi_testkit::model_server::scenario::ModelScenario;

fn main() -> Result<(), Box<dyn error::Error>> {
    let path = env::args_os()
        .nth(1)
        .ok_or("give the path of a scenario file")?;
    let scenario = ModelScenario::parse(&fs::read_to_string(path)?)?;
    let server = ModelServer::start(scenario)?;
    writeln!(io::stdout(), "{}", server.base_url())?;
    io::stdin().read_to_end(&mut Vec::new())?;
    Ok(())
}
