//! Indexes are given once, whatever happens.

use std::path::Path;

use kapi_core::id::{GoalId, Slug};
use kapi_core::isolation::SandboxLevel;
use kapi_core::mode::Mode;
use kapi_core::workflow_status::WorkflowStatus;
use kapi_goal::record::inventory::workflow_entry::WorkflowEntry;
use kapi_goal::record::inventory::{GoalEntry, Inventory, NewDirectory, goal_ids};
use kapi_goal::rules::state::GoalStatus;
use kapi_store::error::StoreError;
use kapi_store::layout::ProjectLayout;
use kapi_sys::disk::{Disk, create_dir_durably, replace_durably};
use kapi_sys::real_disk::RealDisk;
use kapi_sys::sim_disk::{SimDisk, Survival};

use crate::support::ROOT;

fn sim_disk() -> SimDisk {
    let disk = SimDisk::new();
    disk.provide_dir(Path::new(ROOT));
    disk
}

fn layout() -> ProjectLayout {
    ProjectLayout::new(Path::new(ROOT).to_path_buf())
}

fn claim(disk: &SimDisk, slug: &str) -> Option<String> {
    claim_in(disk, &layout(), slug)
        .ok()
        .map(|id| id.to_string())
}

fn claim_in(disk: &dyn Disk, layout: &ProjectLayout, slug: &str) -> Result<GoalId, StoreError> {
    create_dir_durably(disk, layout.root(), &layout.state_dir())?;
    let held = disk.lock(&layout.lock(), "test", 0)?;
    let mut inventory = match Inventory::read(disk, layout)? {
        Some(inventory) => inventory,
        None => Inventory::rebuild(disk, layout, Vec::new())?,
    };
    let new = NewDirectory {
        parent: layout.goals_dir(),
        slug: &Slug::parse(slug).unwrap(),
    };
    inventory.claim(disk, layout, &new, &held)
}

#[test]
fn indexes_count_up_and_slugs_may_repeat() {
    let disk = sim_disk();
    let ids: Vec<_> = ["a", "b", "a"]
        .iter()
        .map(|slug| claim(&disk, slug).unwrap())
        .collect();
    assert_eq!(ids, ["001-a", "002-b", "003-a"]);
    assert_eq!(
        goal_ids(&disk, &layout()).unwrap(),
        [],
        "a claimed directory is no goal"
    );
}

#[test]
fn goals_and_workflows_share_their_indexes() {
    let disk = sim_disk();
    disk.create_dir(&layout().workflows_dir().join("ralph/041-plan"))
        .unwrap();
    assert_eq!(claim(&disk, "next").unwrap(), "042-next");
}

#[test]
fn an_index_is_not_given_again_after_its_directory_was_deleted() {
    let dir = tempfile::tempdir().unwrap();
    let layout = ProjectLayout::new(dir.path().to_path_buf());
    claim_in(&RealDisk, &layout, "a").unwrap();
    let id = claim_in(&RealDisk, &layout, "b").unwrap();
    std::fs::remove_dir(layout.goal(&id).dir()).unwrap();
    assert_eq!(
        claim_in(&RealDisk, &layout, "c").unwrap().to_string(),
        "003-c"
    );
}

#[test]
fn a_lost_or_damaged_inventory_is_rebuilt_from_the_directories() {
    for content in [&b""[..], b"{", b"{\"v\":9}", b"\0\0\0"] {
        let disk = sim_disk();
        claim(&disk, "a").unwrap();
        claim(&disk, "b").unwrap();
        replace_durably(&disk, &layout().inventory(), content).unwrap();
        assert_eq!(claim(&disk, "c").unwrap(), "003-c");
    }
}

#[test]
fn an_index_is_spent_before_anybody_sees_it() {
    let n_ops = {
        let disk = sim_disk();
        claim(&disk, "a").unwrap();
        claim(&disk, "b").unwrap();
        disk.ops()
    };
    for op in 0..=n_ops {
        for survival in [
            Survival::Nothing,
            Survival::TornPrefix(op),
            Survival::Everything,
        ] {
            let disk = sim_disk();
            disk.crash_at(op, survival);
            let before: Vec<String> = ["a", "b"]
                .iter()
                .filter_map(|slug| claim(&disk, slug))
                .collect();
            disk.crash_now(survival);
            disk.reboot();
            let after = claim(&disk, "c").unwrap();
            let index = |name: &String| GoalId::parse(name).unwrap().index();
            assert!(
                before.iter().all(|name| index(name) < index(&after)),
                "op {op}, {survival:?}: {before:?} then {after}"
            );
        }
    }
}

#[test]
fn entries_are_kept_in_order_and_replaced() {
    let entry = |name: &str, status| GoalEntry {
        id: GoalId::parse(name).unwrap(),
        status,
        branch: "feat/x".to_owned(),
        worktree: None,
        sandbox: SandboxLevel::Native,
        updated: "2026-08-22T10:00:00.000Z".to_owned(),
        commit: None,
        race: None,
    };
    let disk = sim_disk();
    let mut inventory = Inventory::rebuild(&disk, &layout(), Vec::new()).unwrap();
    for name in ["010-b", "002-a", "1000-c"] {
        inventory.put(entry(name, GoalStatus::Active));
    }
    inventory.put(entry("010-b", GoalStatus::Done));
    let held = disk.lock(&layout().lock(), "test", 0).unwrap();
    inventory.write(&disk, &layout(), &held).unwrap();
    let read = Inventory::read(&disk, &layout()).unwrap().unwrap();
    assert_eq!(read, inventory);
    let names: Vec<String> = read
        .goals()
        .iter()
        .map(|entry| entry.id.to_string())
        .collect();
    assert_eq!(names, ["002-a", "010-b", "1000-c"]);
    assert_eq!(
        read.find(&GoalId::parse("010-b").unwrap()).unwrap().status,
        GoalStatus::Done
    );
    assert_eq!(read.next_index(), 1001);
}

#[test]
fn workflows_are_found_by_the_names_of_their_directories() {
    let mut inventory = Inventory::rebuild(&sim_disk(), &layout(), Vec::new()).unwrap();
    for name in ["999-keep-sessions", "001-a", "010-b", "1000-c"] {
        inventory.put_workflow(workflow(name));
    }
    for name in [
        "001-a",
        "010-b",
        "999-keep-sessions",
        "1000-c",
        "0001-a",
        "+01-a",
        "01-a",
        "1-a",
        "001-b",
        "001-",
        "001",
        "-a",
        "",
        "999-keep",
        "99999999999-a",
        "01000-c",
    ] {
        let id = GoalId::parse(name).ok();
        let expected = id.and_then(|id| inventory.find_workflow(&id));
        assert_eq!(inventory.find_workflow_named(name), expected, "{name}");
        let is_there = expected.is_some_and(|entry| entry.id.to_string() == name);
        assert_eq!(is_there, expected.is_some(), "{name}");
    }
}

#[test]
fn what_follows_from_the_workflows_is_written_for_others_and_not_read() {
    let disk = sim_disk();
    let held = disk.lock(&layout().lock(), "test", 0).unwrap();
    let mut inventory = Inventory::rebuild(&disk, &layout(), Vec::new()).unwrap();
    inventory.put_workflow(workflow("001-a"));
    inventory.write(&disk, &layout(), &held).unwrap();
    let file = layout().inventory();
    let written = disk.snapshot()[&file].clone();
    let text = String::from_utf8(written.clone()).unwrap();
    for list in ["active", "resumable"] {
        assert!(
            text.contains(&format!("\"{list}\": [\n    \"001-a\"\n  ]")),
            "{text}"
        );
    }
    let wrong = text.replace("    \"001-a\"\n", "    {\"nobody\": [\"reads\", 7]}\n");
    assert_ne!(wrong, text);
    replace_durably(&disk, &file, wrong.as_bytes()).unwrap();
    let read = Inventory::read(&disk, &layout()).unwrap().unwrap();
    assert_eq!(read, inventory);
    read.write(&disk, &layout(), &held).unwrap();
    assert_eq!(disk.snapshot()[&file], written);
}

fn workflow(name: &str) -> WorkflowEntry {
    WorkflowEntry {
        id: GoalId::parse(name).unwrap(),
        mode: Mode::Ralph,
        purpose: "Keep sessions".to_owned(),
        status: WorkflowStatus::Active,
        phase: "planning".to_owned(),
        subphase: None,
        waits: None,
        about: None,
        branch: None,
        worktree: None,
        links: Vec::new(),
        updated: "2026-08-22T10:00:00.000Z".to_owned(),
        log_bytes: 7,
    }
}

#[test]
fn a_directory_whose_first_record_was_never_finished_is_no_goal() {
    let disk = sim_disk();
    let dir = Path::new(ROOT).join(".ilchul/goals/001-try");
    let log = dir.join("events.jsonl");
    let fold = dir.join("state.json");
    disk.create_dir(&dir).unwrap();
    disk.append(&log, b"{\"seq\":1}\n").unwrap();
    replace_durably(&disk, &fold, b"{}").unwrap();
    assert_eq!(goal_ids(&disk, &layout()).unwrap().len(), 1);
    disk.rename(&fold, &fold.with_extension("gone")).unwrap();
    assert_eq!(
        goal_ids(&disk, &layout()).unwrap().len(),
        1,
        "the log itself says so"
    );
    let length = disk.len(&log).unwrap().unwrap();
    disk.truncate(&log, length - 1).unwrap();
    assert_eq!(goal_ids(&disk, &layout()).unwrap(), []);
    disk.append(&log, b"x\n").unwrap();
    assert_eq!(
        goal_ids(&disk, &layout()).unwrap().len(),
        1,
        "a damaged goal is not hidden"
    );
}
