//! The kernel of tasks beside bare system calls, beside another queue, and beside itself with a
//! longer past.
//!
//! Uses the real disk and the engine's own calls; further processes are this program, once more.

mod cost;
pub(super) mod crew;
mod errand;
mod idle;
mod many;
pub(super) mod member;
pub(super) mod past;
mod rate;
mod redis;
mod rq;
mod start;
mod unsynced;

use std::path::PathBuf;

use anyhow::anyhow;

use self::redis::Server;
use self::rq::Rq;
use super::BenchDirectory;
use super::comparison::{Side, not_run};
use super::options::Extra;
use super::table::{ComparisonRow, ComparisonTable};
use crate::output::talk;

/// What stands beside the kernel, or why it cannot.
struct Peers {
    redis: anyhow::Result<Server>,
    rq: anyhow::Result<Rq>,
}

/// Measures everything about the kernel.
pub(super) fn tables(
    location: &BenchDirectory,
    extras: &[Extra],
) -> anyhow::Result<Vec<ComparisonTable>> {
    let peers = Peers::prepare(location, extras);
    let mut tables = vec![
        many::compare(location)?,
        cost::compare(location, &peers)?,
        start::compare(location, &peers)?,
        rate::compare(location, &peers)?,
    ];
    tables.extend(idle::compare(location)?);
    Ok(tables)
}

impl Peers {
    /// Installs what was asked for and starts what there is.
    fn prepare(location: &BenchDirectory, extras: &[Extra]) -> Self {
        // Beside the scratch directory, which is emptied by each run.
        let home = location.scratch.with_file_name("bench-peers");
        let directory = location.scratch.join("redis");
        for extra in extras {
            let installed = match extra {
                Extra::Redis => redis::install(&location.scratch),
                Extra::Rq => rq::install(&home),
                Extra::PiAutoresearch | Extra::PiUntilDone => Ok(()),
            };
            // It stands in the table as a peer that is not there, too.
            if let Err(error) = installed {
                talk(&format!("warning: failed to {error:#}"));
            }
        }
        let redis = Server::start(&directory);
        let rq = match &redis {
            Ok(server) => Rq::find(&home, &directory, &server.socket),
            Err(error) => Err(anyhow!("it needs redis: {error:#}")),
        };
        Self { redis, rq }
    }

    /// Says which they are.
    fn versions(&self) -> String {
        let redis = self.redis.as_ref().map(|server| &server.version);
        let rq = self.rq.as_ref().map(|rq| &rq.version);
        match (redis, rq) {
            (Ok(redis), Ok(rq)) => format!("redis {redis} and rq {rq}"),
            (Ok(redis), Err(_)) => format!("redis {redis}"),
            (Err(_), _) => "redis is not there".to_owned(),
        }
    }
}

/// Returns the row of a peer that is not there.
fn absent(ours: &str, peer: &str, error: &anyhow::Error) -> ComparisonRow {
    not_run(ours, peer, &format!("{error:#}"), Side::Peer)
}

/// Returns a directory of this group.
fn directory(location: &BenchDirectory, name: &str) -> PathBuf {
    location.scratch.join(format!("kernel-{name}"))
}
