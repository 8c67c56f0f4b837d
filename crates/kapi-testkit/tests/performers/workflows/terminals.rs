//! Watching workers in tmux: a session of ours, and nobody else's.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command as Process;

use kapi_core::id::GoalId;
use kapi_run::host_grants::HostGrants;
use kapi_workflow::perform::terminal::{SessionEnd, WatchedWorkflow, end_tmux, watch_in_tmux};
use kapi_workflow::rules::worker::WorkerId;
use tempfile::TempDir;

use super::WorkflowRig;

/// A tmux server of the test's own, which goes with it.
struct Server {
    dir: TempDir,
    grants: HostGrants,
    id: GoalId,
}

impl Server {
    fn new(rig: &WorkflowRig) -> Self {
        let dir = tempfile::Builder::new().prefix("tmux-").tempdir().unwrap();
        let mut grants = rig.grants();
        grants.env.insert("TMUX_TMPDIR".into(), dir.path().into());
        Self {
            dir,
            grants,
            id: GoalId::parse("900-demo").unwrap(),
        }
    }

    fn watched(&self) -> WatchedWorkflow<'_> {
        WatchedWorkflow {
            workflow: &self.id,
            project_key: "app-0123456789ab",
            project: Path::new("/"),
        }
    }

    fn show(&self, worker: &str) -> Option<String> {
        let command: Vec<OsString> = ["sleep", "600"].iter().map(OsString::from).collect();
        let worker = WorkerId(worker.to_owned());
        watch_in_tmux(&self.grants, self.watched(), &worker, &command).unwrap()
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
    let rig = WorkflowRig::new("turns: []\n");
    let server = Server::new(&rig);
    assert_eq!(
        end_tmux(&server.grants, server.watched()).unwrap(),
        SessionEnd::Nothing
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
        end_tmux(&server.grants, server.watched()).unwrap(),
        SessionEnd::Session
    );
    assert_eq!(server.windows(), ["kapi-900-demo-mine:w"]);
    assert_eq!(
        end_tmux(&server.grants, server.watched()).unwrap(),
        SessionEnd::Nothing
    );
}

#[test]
fn a_session_of_that_name_that_is_somebody_elses_is_neither_used_nor_ended() {
    let rig = WorkflowRig::new("turns: []\n");
    let server = Server::new(&rig);
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
        end_tmux(&server.grants, server.watched()).unwrap(),
        SessionEnd::Session
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
    let refused = watch_in_tmux(&server.grants, server.watched(), &worker, &["true".into()]);
    assert!(refused.unwrap_err().message.contains("not Kapi's"));
    assert_eq!(
        server.windows(),
        ["kapi-900-demo-6789ab:too", "kapi-900-demo:theirs"]
    );
}

#[test]
fn without_tmux_nothing_is_watched() {
    let rig = WorkflowRig::new("turns: []\n");
    let mut grants = rig.grants();
    grants.env.insert("PATH".into(), "/nonexistent".into());
    let id = GoalId::parse("900-demo").unwrap();
    let watched = WatchedWorkflow {
        workflow: &id,
        project_key: "app-0123456789ab",
        project: Path::new("/"),
    };
    let worker = WorkerId("w1".to_owned());
    assert_eq!(watch_in_tmux(&grants, watched, &worker, &[]).unwrap(), None);
    assert_eq!(end_tmux(&grants, watched).unwrap(), SessionEnd::Nothing);
}
