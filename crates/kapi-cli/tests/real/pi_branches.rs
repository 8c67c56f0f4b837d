//! Sessions of Pi that are opened again, forked or branched: each has the goal that was set up in it.

use kapi_testkit::model_server::scenario::{AssistantTurn, Route};
use serde_json::json;

use crate::environment::{TASK, write};
use crate::pi_goal_rig::{AT_THE_GATE, UNFINISHED, accepted, done, says, tool, working};
use crate::pi_host::{Host, Options, PiVersion};

/// Moves to the first message of the session, and back to where it came from.
const MOVER: &str = "
let from;
export default function (pi) {
	pi.registerCommand('move', { description: 'move', handler: async (to, ctx) => {
		const branch = ctx.sessionManager.getBranch();
		if (to === 'first') {
			from = ctx.sessionManager.getLeafId();
			const first = branch.find((entry) => entry.type === 'message' && entry.message.role === 'assistant');
			await ctx.navigateTree(first.id, { summarize: false });
		} else await ctx.navigateTree(from, { summarize: false });
		ctx.ui.notify('moved', 'info');
	} });
}
";

#[test]
fn a_session_keeps_its_goal_when_it_is_opened_again_and_when_it_is_forked() {
    opened_again_and_forked(PiVersion::Pinned);
}

pub(crate) fn opened_again_and_forked(version: PiVersion) {
    let ask = json!({"question": "Which answer?", "reason": "there are several"});
    let rig = accepted(vec![
        working(vec![tool("block", ask), says("I have to ask.")]),
        Route::new("You said that you were blocked", done()),
    ])
    .in_pi(version);
    let mut host = rig.begun();
    host.reported("the agent is blocked: Which answer?");
    let (_, file) = host.session();
    host.end();
    rig.env.await_no_process();

    let args = ["--session", file.as_str()];
    let options = Options {
        args: &args,
        ..rig.options()
    };
    let mut host = Host::start(&rig.env, &options);
    host.command("/until-done status");
    host.reported("001-make-answer-right blocked");
    // A fork carries the goal where the person says so.
    let forks = host.ask(&json!({ "type": "get_fork_messages" }));
    let from = forks["messages"].as_array().unwrap().last().unwrap()["entryId"].clone();
    host.send(&json!({ "type": "fork", "entryId": from }));
    host.choose("carry");
    host.wait("the fork", &|line| {
        line["type"] == "response" && line["command"] == "fork"
    });
    let (_, forked) = host.session();
    assert_ne!(forked, file);
    host.command("/until-done resume");
    host.reported("is done");
    assert_eq!(rig.goal()["status"], "done");
    host.end();
    rig.env.await_no_process();
}

#[test]
fn each_branch_of_the_tree_has_the_goal_that_was_set_up_in_it() {
    branches_of_the_tree(PiVersion::Pinned);
}

pub(crate) fn branches_of_the_tree(version: PiVersion) {
    let rig = accepted(vec![
        working(vec![
            tool(
                "block",
                json!({"question": "Which answer?", "reason": "there are several"}),
            ),
            says("I have to ask."),
        ]),
        Route::new(
            "You said that you were blocked",
            vec![AssistantTurn::bash(AT_THE_GATE), says("Wait.")],
        ),
        Route::new(UNFINISHED, done()),
    ])
    .in_pi(version);
    rig.gate();
    // A person moves in the tree by a dialog; here a command of another extension does.
    let mover = rig.env.root().join("mover.ts");
    write(&mover, MOVER);
    let args = ["-e", mover.to_str().unwrap()];
    let options = Options {
        args: &args,
        ..rig.options()
    };
    let mut host = Host::start(&rig.env, &options);
    host.prompt("hello");
    host.command(&format!("/until-done {TASK}"));
    host.confirm(true);
    host.reported("the agent is blocked");
    // Before the goal there is none.
    host.command("/move first");
    host.reported("moved");
    host.command("/until-done status");
    host.reported("No active goal");
    host.command("/move back");
    host.reported("moved");
    host.command("/until-done status");
    host.reported("001-make-answer-right blocked");
    host.command("/until-done resume");
    host.wait("the command", &|line| {
        line["type"] == "tool_execution_start" && line["toolName"] == "bash"
    });
    rig.open_gate();
    host.reported("is done");
    host.end();
    rig.env.await_no_process();
}
