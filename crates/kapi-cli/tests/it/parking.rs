//! Goals that are parked, by a person or by their agent, for tests that see them wake.
//!
//! Parks through the engine, as the commands do that park; what wakes them is the built binary.

use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_core::id::GoalId;
use kapi_goal::record::project::Project;
use kapi_goal::rules::command::{GoalCommand, PersonCommand};
use kapi_goal::rules::state::Goal;
use kapi_goal::rules::tool::ToolCall;
use kapi_goal::rules::wait::{FileState, WaitFor};
use kapi_store::layout::ProjectLayout;
use kapi_sys::clock::SystemClock;
use kapi_sys::real_disk::RealDisk;

use crate::environment::{Environment, FIRST};
use crate::program::Running;

/// An agent that works until it is cut off the first time, and does the work the second time. It
/// remembers in its home, for its workspace may be put back to what it was.
pub(crate) const TWICE: &str = "command:[ -e ~/begun ] || { touch ~/begun begun; sleep 2999; }; rm -f begun; echo 42 > answer.txt";

/// Does something with the project of a machine, as one more process does.
pub(crate) fn in_project<T>(env: &Environment, act: impl FnOnce(&Project<'_>) -> T) -> T {
    act(&Project {
        disk: &RealDisk,
        clock: &SystemClock,
        layout: ProjectLayout::new(env.repository()),
        owner: "test".to_owned(),
        home: None,
    })
}

pub(crate) fn load(env: &Environment, id: &str) -> Goal {
    in_project(env, |project| project.load(&goal_id(id)).unwrap())
}

fn submit(env: &Environment, id: &str, actor: &Actor, command: &GoalCommand) {
    in_project(env, |project| {
        project.submit(&goal_id(id), actor, command).unwrap();
    });
}

fn goal_id(id: &str) -> GoalId {
    GoalId::parse(id).unwrap()
}

fn person() -> Actor {
    Actor::Human {
        user: "ada".to_owned(),
    }
}

/// Names another judge, as a process without this person's home does.
pub(crate) fn change_judge(env: &Environment, id: &str, judge: &str) {
    let judge = judge.to_owned();
    let command = GoalCommand::Person(PersonCommand::ChangeJudge { judge });
    submit(env, id, &person(), &command);
}

/// Parks a goal as a person does.
pub(crate) fn park(env: &Environment, id: &str, until: WaitFor, timeout_ms: Option<u64>) {
    let park = PersonCommand::Park {
        until,
        reason: None,
        timeout_ms,
    };
    submit(env, id, &person(), &GoalCommand::Person(park));
}

/// Gives the consent that a goal is parked on.
pub(crate) fn allow(env: &Environment, id: &str, what: &str) {
    // By the command itself: leave is kept in the person's home.
    let given = env.kapi(&["goal", "allow", id, what]);
    assert_eq!(given.code, 0, "{given:?}");
}

/// Asks to wait as the agent does whose turn is under way.
pub(crate) fn ask_to_wait(env: &Environment, id: &str, until: WaitFor) {
    let goal = load(env, id);
    let run = goal.run_name(&goal.in_flight.as_ref().unwrap().effect);
    let wait = GoalCommand::Tool(ToolCall::Wait {
        until,
        reason: "the build is not available yet".to_owned(),
        timeout_ms: None,
    });
    submit(env, id, &Actor::Agent { run }, &wait);
}

/// A wait for a file of the machine, beside the repository.
pub(crate) fn for_file(env: &Environment, name: &str) -> WaitFor {
    WaitFor::File {
        path: env.root().join(name).display().to_string(),
        until: FileState::Exists,
    }
}

/// Starts the usual run with an agent, and waits until its first turn is under way.
pub(crate) fn working(env: &Environment, agent: &str, options: &[&str]) -> Running {
    let running = env.start_run(agent, options);
    await_working(env, FIRST);
    running
}

/// Waits until the agent of a goal has begun its first turn.
pub(crate) fn await_working(env: &Environment, id: &str) {
    crate::environment::await_some("an agent at work", || {
        let worktree = env.home().join(".ilchul/worktrees");
        let projects = std::fs::read_dir(worktree).ok()?;
        let mut paths = projects.map(|project| project.unwrap().path().join(id));
        paths.any(|path| path.join("begun").exists()).then_some(())
    });
}

/// Waits until a project has a goal of this index, and returns its id.
pub(crate) fn nth(env: &Environment, index: u32) -> String {
    let prefix = format!("{index:03}-");
    crate::environment::await_some("a goal of that index", || {
        let goals = std::fs::read_dir(env.goal_dir("")).ok()?;
        let mut names = goals.map(|goal| goal.unwrap().file_name().into_string().unwrap());
        names.find(|name| name.starts_with(&prefix))
    })
}

/// Makes a goal that is parked, and of which no process is left.
pub(crate) fn parked(env: &Environment, until: WaitFor, timeout_ms: Option<u64>) {
    let running = working(env, TWICE, &[]);
    park(env, FIRST, until, timeout_ms);
    running.kill();
    env.await_no_process();
}

/// Makes an active goal whose driver was killed at work.
pub(crate) fn orphaned(env: &Environment) {
    working(env, TWICE, &[]).kill();
    env.await_no_process();
}

/// Makes the agent of a goal forget that it has begun.
pub(crate) fn forget_beginning(env: &Environment, id: &str) {
    let sandboxes = env.home().join(".ilchul/sandboxes");
    let projects = std::fs::read_dir(sandboxes).unwrap();
    let files = projects.map(|project| project.unwrap().path().join(id).join("home-command/begun"));
    for file in files.chain([worktree(env, id).join("begun")]) {
        if file.exists() {
            std::fs::remove_file(file).unwrap();
        }
    }
}

pub(crate) fn worktree(env: &Environment, id: &str) -> PathBuf {
    PathBuf::from(load(env, id).workspace.unwrap())
}

/// Returns why a goal was woken last.
pub(crate) fn woken_because(env: &Environment, id: &str) -> String {
    let events = env.events(id);
    let mut woken = events.iter().filter(|event| event["type"] == "goal_woken");
    woken.next_back().unwrap()["data"]["why"]
        .as_str()
        .unwrap()
        .to_owned()
}

/// Checks that a goal was woken so often, and done once.
pub(crate) fn assert_woken_and_done(env: &Environment, id: &str, times: usize) {
    assert_eq!(count(env, id, "goal_woken"), times, "{:#?}", env.events(id));
    assert_eq!(count(env, id, "goal_done"), 1);
    assert_eq!(env.json(&["audit"])["ok"], true);
}

pub(crate) fn count(env: &Environment, id: &str, kind: &str) -> usize {
    let events = env.events(id);
    events.iter().filter(|event| event["type"] == kind).count()
}
