//! Races: one winner, whoever looks and whatever fails in between; losers stop and keep their work.

use std::path::Path;
use std::thread;

use kapi_core::actor::Actor;
use kapi_core::id::GoalId;
use kapi_goal::record::error::EngineError;
use kapi_goal::record::project::Project;
use kapi_goal::record::race::{Winner, decide_winner, lanes, settle, stop_others, winner};
use kapi_goal::rules::contract::{Contract, Race, RaceEnd};
use kapi_goal::rules::effect::GoalEffect;
use kapi_goal::rules::event::Stop;
use kapi_goal::rules::outcome::GoalOutcome;
use kapi_goal::rules::state::GoalStatus;
use kapi_sys::clock::StepClock;
use kapi_sys::real_disk::RealDisk;
use kapi_sys::sim_disk::{SimDisk, Survival};

use crate::support::{
    Fixture, ROOT, approved, contract, drive_in, failing, person, project_on, well,
};

const LANES: u32 = 3;

fn lane(of: u32, lane: u32, ends: RaceEnd) -> Contract {
    Contract {
        branch: format!("feat/goal-try-lane-{lane}"),
        race: Some(Race {
            of,
            lane,
            lanes: LANES,
            ends,
        }),
        ..contract()
    }
}

/// Begins a race of three lanes; the first goal has the index `of`.
fn begin(project: &Project<'_>, of: u32, ends: RaceEnd) -> Vec<GoalId> {
    let ids: Vec<GoalId> = (1..=LANES)
        .map(|number| approved(project, &lane(of, number, ends)))
        .collect();
    assert_eq!(ids[0].index(), of);
    ids
}

fn drive(project: &Project<'_>, id: &GoalId, act: &(dyn Fn(&GoalEffect) -> GoalOutcome + Sync)) {
    drive_in(project, id, &|effect, _| act(effect), &mut |_| {}).unwrap();
}

fn statuses(project: &Project<'_>, ids: &[GoalId]) -> Vec<GoalStatus> {
    let status = |id: &GoalId| project.load(id).unwrap().status;
    ids.iter().map(status).collect()
}

#[test]
fn the_first_recorded_proof_wins_and_the_others_are_cancelled_with_the_reason() {
    let fixture = Fixture::new();
    let project = fixture.project();
    let ids = begin(&project, 1, RaceEnd::FirstProved);
    assert_eq!(decide_winner(&project, 1).unwrap(), None);
    // It works, and its checks fail.
    drive(&project, &ids[0], &failing);
    let kept = project.load(&ids[0]).unwrap().candidate;
    assert!(kept.is_some());
    assert_eq!(
        settle(&project, &person(), &project.load(&ids[0]).unwrap()).unwrap(),
        None
    );

    drive(&project, &ids[1], &well);
    let goal = project.load(&ids[1]).unwrap();
    let won = settle(&project, &person(), &goal).unwrap().unwrap();
    assert_eq!((won.lane, &won.goal), (2, &ids[1]));
    assert_eq!(Some(&won.commit), goal.result.as_ref());
    assert_eq!(winner(&project, 1).unwrap(), Some(won));
    assert_eq!(
        statuses(&project, &ids),
        [
            GoalStatus::Cancelled,
            GoalStatus::Done,
            GoalStatus::Cancelled
        ]
    );
    for id in [&ids[0], &ids[2]] {
        let reason = Some("lane 2 won".to_owned());
        assert_eq!(
            project.load(id).unwrap().stop,
            Some(Stop::Cancelled { reason })
        );
    }
    assert_eq!(project.load(&ids[0]).unwrap().candidate, kept);
    // Once more changes nothing.
    let before = fixture.disk.snapshot();
    settle(&project, &person(), &goal).unwrap().unwrap();
    assert_eq!(fixture.disk.snapshot(), before);
}

#[test]
fn of_two_proofs_the_one_recorded_earlier_wins_and_the_later_is_kept() {
    let fixture = Fixture::new();
    let project = fixture.project();
    // Another goal and another race beside it are not touched.
    let other = approved(&project, &contract());
    let others = begin(&project, 2, RaceEnd::FirstProved);
    let ids = begin(&project, 5, RaceEnd::FirstProved);
    drive(&project, &ids[2], &well);
    drive(&project, &ids[0], &well);
    let won = settle(&project, &person(), &project.load(&ids[0]).unwrap());
    assert_eq!(won.unwrap().unwrap().lane, 3);
    assert_eq!(
        statuses(&project, &ids),
        [GoalStatus::Done, GoalStatus::Cancelled, GoalStatus::Done]
    );
    let commit = project.load(&ids[0]).unwrap().result;
    assert!(commit.is_some(), "what was proved too late is proved");
    assert_eq!(statuses(&project, &others), [GoalStatus::Active; 3]);
    assert_eq!(statuses(&project, &[other]), [GoalStatus::Active]);
    assert_eq!(winner(&project, 2).unwrap(), None);
    // What is on record stands, even when the log would say otherwise now.
    let record = project.layout.goal(&ids[0]).race();
    let text = String::from_utf8(project.disk.read(&record, 0).unwrap().unwrap()).unwrap();
    let claimed: Winner =
        serde_json::from_str(&text.replace("\"lane\": 3", "\"lane\": 1")).unwrap();
    kapi_sys::disk::replace_durably(
        project.disk,
        &record,
        &serde_json::to_vec(&claimed).unwrap(),
    )
    .unwrap();
    assert_eq!(decide_winner(&project, 5).unwrap(), Some(claimed));
    // A record that cannot be read is made again from the logs.
    kapi_sys::disk::replace_durably(project.disk, &record, b"{torn").unwrap();
    assert_eq!(winner(&project, 5).unwrap(), None);
    assert_eq!(decide_winner(&project, 5).unwrap().unwrap().lane, 3);
}

#[test]
fn lanes_that_prove_at_once_have_one_winner_for_everybody() {
    let dir = tempfile::tempdir().unwrap();
    let clock = StepClock::new(0);
    let open = || project_on(&RealDisk, &clock, dir.path().into());
    let ids = begin(&open(), 1, RaceEnd::FirstProved);
    let race = |id: &GoalId| {
        let project = open();
        let driven = drive_in(&project, id, &|effect, _| well(effect), &mut |_| {}).unwrap();
        let won = settle(&project, &person(), &driven).unwrap();
        (driven.status, won.map(|won| won.lane))
    };
    let ended: Vec<(GoalStatus, Option<u32>)> = thread::scope(|scope| {
        let threads: Vec<_> = ids.iter().map(|id| scope.spawn(|| race(id))).collect();
        threads.into_iter().map(|it| it.join().unwrap()).collect()
    });
    let won = winner(&open(), 1).unwrap().unwrap();
    assert_eq!(open().load(&won.goal).unwrap().status, GoalStatus::Done);
    for (status, lane) in ended {
        assert!(
            matches!(status, GoalStatus::Done | GoalStatus::Cancelled),
            "{status}"
        );
        assert_eq!(lane, Some(won.lane));
    }
}

#[test]
fn a_comparison_has_no_recorded_winner_and_stops_nobody() {
    let fixture = Fixture::new();
    let project = fixture.project();
    let ids = begin(&project, 1, RaceEnd::Compare);
    drive(&project, &ids[0], &well);
    assert_eq!(
        settle(&project, &person(), &project.load(&ids[0]).unwrap()).unwrap(),
        None
    );
    assert_eq!(decide_winner(&project, 1).unwrap(), None);
    assert_eq!(
        statuses(&project, &ids),
        [GoalStatus::Done, GoalStatus::Active, GoalStatus::Active]
    );
}

#[test]
fn only_a_person_stops_the_others() {
    let fixture = Fixture::new();
    let project = fixture.project();
    let ids = begin(&project, 1, RaceEnd::FirstProved);
    drive(&project, &ids[0], &well);
    let won = decide_winner(&project, 1).unwrap().unwrap();
    let agent = Actor::Agent {
        run: "002-try-1-agent-1".to_owned(),
    };
    for actor in [agent, Actor::Engine] {
        let error = stop_others(&project, &actor, &won).unwrap_err();
        assert!(matches!(error, EngineError::Denied(_)), "{error}");
    }
    assert_eq!(
        statuses(&project, &ids),
        [GoalStatus::Done, GoalStatus::Active, GoalStatus::Active]
    );
    assert_eq!(stop_others(&project, &person(), &won).unwrap(), ids[1..]);
}

#[test]
fn lanes_are_found_though_one_was_never_made() {
    let fixture = Fixture::new();
    let project = fixture.project();
    for number in [1, 3] {
        approved(&project, &lane(1, number, RaceEnd::FirstProved));
        approved(&project, &contract());
    }
    let found = lanes(&project, 1).unwrap();
    let numbers: Vec<u32> = found.iter().map(|lane| lane.race.lane).collect();
    assert_eq!(numbers, [1, 3]);
    assert_eq!(lanes(&project, 2).unwrap(), []);
    assert_eq!(winner(&project, 9).unwrap(), None);
}

/// Two lanes are proved, the third is under way, and nobody has looked yet.
fn prepared() -> (SimDisk, StepClock, Vec<GoalId>) {
    let disk = SimDisk::new();
    disk.provide_dir(Path::new(ROOT));
    let clock = StepClock::new(1_787_392_800_000);
    let project = project_on(&disk, &clock, ROOT.into());
    let ids = begin(&project, 1, RaceEnd::FirstProved);
    for id in [&ids[1], &ids[0]] {
        drive(&project, id, &well);
    }
    (disk, clock, ids)
}

fn look(project: &Project<'_>, ids: &[GoalId]) -> Result<u32, EngineError> {
    let won = settle(project, &person(), &project.load(&ids[0])?)?;
    Ok(won.unwrap().lane)
}

fn crash(op: u64, survival: Survival) {
    let (disk, clock, ids) = prepared();
    let open = || project_on(&disk, &clock, ROOT.into());
    disk.crash_at(op, survival);
    let before = look(&open(), &ids).ok();
    disk.crash_now(survival);
    disk.reboot();
    let context = format!("crash at {op} with {survival:?}, {before:?} before");
    for _ in 0..2 {
        assert_eq!(look(&open(), &ids).unwrap(), 2, "{context}");
        assert_eq!(
            statuses(&open(), &ids),
            [GoalStatus::Done, GoalStatus::Done, GoalStatus::Cancelled],
            "{context}"
        );
    }
    assert!(before.is_none_or(|lane| lane == 2), "{context}");
}

#[test]
fn no_power_failure_makes_two_winners_or_leaves_a_loser_going() {
    let (disk, clock, ids) = prepared();
    let from = disk.ops();
    look(&project_on(&disk, &clock, ROOT.into()), &ids).unwrap();
    assert!(disk.ops() > from, "the winner is recorded");
    for op in from..=disk.ops() {
        for survival in [
            Survival::Nothing,
            Survival::TornPrefix(op.wrapping_mul(31)),
            Survival::Everything,
            Survival::PageCache,
        ] {
            crash(op, survival);
        }
    }
}
