//! Watching workers in tmux: a session of ours, and nobody else's.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command as Process;

use kapi_core::id::GoalId;
use kapi_run::book::Book;
use kapi_workflow::perform::terminal::{Ended, Watched, end_tmux, watch_in_tmux};
use kapi_workflow::rules::worker::WorkerId;
use tempfile::TempDir;

use super::Bench;

/// A tmux server of the test's own, which goes with it.
struct Server {
    dir: TempDir,
    book: Book,
    id: GoalId,
}

impl Server {
    fn new(bench: &Bench) -> Self {
        let dir = tempfile::Builder::new().prefix("tmux-").tempdir().unwrap();
        let mut book = bench.book();
        book.env.insert("TMUX_TMPDIR".into(), dir.path().into());
        Self {
            dir,
            book,
            id: GoalId::parse("900-demo").unwrap(),
        }
    }

    fn watched(&self) -> Watched<'_> {
        Watched {
            workflow: &self.id,
            project_key: "app-0123456789ab",
            project: Path::new("/"),
        }
    }

    fn show(&self, worker: &str) -> Option<String> {
        let command: Vec<OsString> = ["sleep", "600"].iter().map(OsString::from).collect();
        let worker = WorkerId(worker.to_owned());
        watch_in_tmux(&self.book, self.watched(), &worker, &command).unwrap()
    }

    fn tmux(&self, args: &[&str]) -> String {
        #[expect(clippy::disallowed_methods, reason = "a test looks from outside")]
        let output = Process::new("tmux")
            .args(args)
            .env("TMUX_TMPDIR", self.dir.path())
            .env_remove("TMUX")
            .output()
            .unwrap();
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    fn windows(&self) -> Vec<String> {
        let text = self.tmux(&["list-windows", "-a", "-F", "#{session_name}:#{window_name}"]);
        let mut found: Vec<String> = text.lines().map(str::to_owned).collect();
        found.sort();
        found
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.tmux(&["kill-server"]);
    }
}

#[test]
fn each_worker_has_a_window_and_what_is_not_ours_stays() {
    let bench = Bench::new("turns: []\n");
    let server = Server::new(&bench);
    assert_eq!(
        end_tmux(&server.book, server.watched()).unwrap(),
        Ended::Nothing
    );
    assert_eq!(server.show("w1").as_deref(), Some("kapi-900-demo:w1"));
    assert_eq!(server.show("w2").as_deref(), Some("kapi-900-demo:w2"));
    // A repeated one finds its window.
    assert_eq!(server.show("w1").as_deref(), Some("kapi-900-demo:w1"));
    server.tmux(&[
        "new-session",
        "-d",
        "-s",
        "kapi-900-demo-mine",
        "-n",
        "w",
        "sleep 600",
    ]);
    let all = [
        "kapi-900-demo-mine:w",
        "kapi-900-demo:w1",
        "kapi-900-demo:w2",
    ];
    assert_eq!(server.windows(), all);
    assert_eq!(
        end_tmux(&server.book, server.watched()).unwrap(),
        Ended::Session
    );
    assert_eq!(server.windows(), ["kapi-900-demo-mine:w"]);
    assert_eq!(
        end_tmux(&server.book, server.watched()).unwrap(),
        Ended::Nothing
    );
}

#[test]
fn a_session_of_that_name_that_is_somebody_elses_is_neither_used_nor_ended() {
    let bench = Bench::new("turns: []\n");
    let server = Server::new(&bench);
    server.tmux(&[
        "new-session",
        "-d",
        "-s",
        "kapi-900-demo",
        "-n",
        "theirs",
        "sleep 600",
    ]);
    // Even one that carries the option of another project's workflow.
    let other = "app-ffffffffffff/900-demo";
    server.tmux(&[
        "set-option",
        "-t",
        "=kapi-900-demo:",
        "@kapi_workflow",
        other,
    ]);
    let ours = "kapi-900-demo-6789ab:w1";
    assert_eq!(server.show("w1").as_deref(), Some(ours));
    assert_eq!(server.windows(), [ours, "kapi-900-demo:theirs"]);
    assert_eq!(
        end_tmux(&server.book, server.watched()).unwrap(),
        Ended::Session
    );
    assert_eq!(server.windows(), ["kapi-900-demo:theirs"]);
    server.tmux(&[
        "new-session",
        "-d",
        "-s",
        "kapi-900-demo-6789ab",
        "-n",
        "too",
        "sleep 600",
    ]);
    let worker = WorkerId("w1".to_owned());
    let refused = watch_in_tmux(&server.book, server.watched(), &worker, &["true".into()]);
    assert!(refused.unwrap_err().message.contains("not Kapi's"));
    assert_eq!(
        server.windows(),
        ["kapi-900-demo-6789ab:too", "kapi-900-demo:theirs"]
    );
}

#[test]
fn without_tmux_nothing_is_watched() {
    let bench = Bench::new("turns: []\n");
    let mut book = bench.book();
    book.env.insert("PATH".into(), "/nonexistent".into());
    let id = GoalId::parse("900-demo").unwrap();
    let watched = Watched {
        workflow: &id,
        project_key: "app-0123456789ab",
        project: Path::new("/"),
    };
    let worker = WorkerId("w1".to_owned());
    assert_eq!(watch_in_tmux(&book, watched, &worker, &[]).unwrap(), None);
    assert_eq!(end_tmux(&book, watched).unwrap(), Ended::Nothing);
}
