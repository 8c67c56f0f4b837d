//! Several machines with one queue: homes and clones of their own, and a cluster between them.

use std::path::Path;

use kapi_testkit::cluster::Cluster;
use serde_json::Value;

use crate::environment::{Environment, await_some};

mod proxy;
mod real;

/// The tests' cluster and the machine that asks for tasks.
pub(crate) struct Fleet {
    pub(crate) cluster: Cluster,
    pub(crate) asks: Environment,
}

impl Fleet {
    /// Starts servers, and a machine with a repository whose answer is wrong.
    pub(crate) fn new(n_servers: usize) -> Self {
        let above = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let cluster = Cluster::start(n_servers, above).unwrap();
        // Whoever asks waits for ten seconds only.
        cluster.wait_until_healthy().unwrap();
        let mut asks = Environment::new();
        asks.set("KAPI_STORE", &cluster.address());
        Self { cluster, asks }
    }

    /// Makes another machine with a clone as of now, that knows the store by this address.
    pub(crate) fn machine(&self, address: &str) -> Environment {
        let mut machine = Environment::bare();
        let from = self.asks.repository().display().to_string();
        machine.git(&["fetch", "--quiet", &from, "main"]);
        machine.git(&["reset", "--quiet", "--hard", "FETCH_HEAD"]);
        machine.set("KAPI_STORE", address);
        machine
    }

    /// Makes a commit that other machines do not have.
    pub(crate) fn commit(&self, name: &str) -> String {
        self.asks.write(name, "only here\n");
        self.asks.commit_all(name);
        self.asks.commit_of("HEAD")
    }

    /// Submits a task for whoever takes it.
    pub(crate) fn submit(&self, agent: &str) -> Value {
        let submitted = self.asks.kapi(&[
            "task",
            "run",
            "make it right",
            "--agent",
            agent,
            "--detach",
            "--json",
        ]);
        assert_eq!(submitted.code, 0, "{submitted:?}");
        submitted.document()
    }

    /// Waits until a task is as it should be, as the machine that asked sees it.
    pub(crate) fn await_task(&self, what: &str, is_it: &dyn Fn(&Value) -> bool) -> Value {
        await_some(what, || {
            let shown = self.asks.kapi(&["show", "task_1", "--json"]);
            let shown = (shown.code == 0).then(|| shown.document())?;
            is_it(&shown).then_some(shown)
        })
    }

    /// Waits for the end of the task and returns how it came out.
    pub(crate) fn result(&self, code: i32) -> Value {
        let waited = self
            .asks
            .kapi(&["wait", "task_1", "--json", "--timeout", "2m"]);
        assert_eq!(waited.code, code, "{waited:?}");
        crate::program::parse(waited.stdout.lines().last().unwrap())
    }
}
