//! Goals of a project: creating, listing, naming, following.

use kapi_core::id::Slug;
use kapi_goal::record::contract_hash::contract_hash;
use kapi_goal::record::goal_listing::ListingStatus;
use kapi_goal::record::reference::ResolveError;
use kapi_goal::rules::command::GoalCommand;
use kapi_goal::rules::state::GoalStatus;
use kapi_machine::follow::LogCursor;
use kapi_sys::disk::{Disk as _, replace_derived};

use crate::support::{Fixture, contract, kind, person, well};

#[test]
fn the_state_directory_ignores_itself() {
    let fixture = Fixture::new();
    fixture.project().prepare().unwrap();
    let layout = fixture.project().layout;
    assert_eq!(fixture.disk.snapshot()[&layout.gitignore()], b"*\n");
    let ops = fixture.disk.ops();
    fixture.project().prepare().unwrap();
    assert_eq!(fixture.disk.ops(), ops, "once is enough");
}

#[test]
fn a_claimed_directory_can_be_filled_before_the_goal_exists() {
    let fixture = Fixture::new();
    let project = fixture.project();
    let slug = Slug::parse("try").unwrap();
    let id = project.claim_goal(&person(), &slug, &contract()).unwrap();
    assert_eq!(project.goals().unwrap().len(), 0);
    assert!(matches!(
        project.resolve("1"),
        Err(ResolveError::Unknown { .. })
    ));
    let hidden = project.layout.goal(&id).hidden();
    fixture.disk.create_dir(&hidden).unwrap();
    project.create_claimed(&person(), &id, &contract()).unwrap();
    assert_eq!(project.resolve("1").unwrap(), id);
    assert!(
        project.create_claimed(&person(), &id, &contract()).is_err(),
        "only once"
    );
    // A claim that is never used costs its index and nothing else.
    project.claim_goal(&person(), &slug, &contract()).unwrap();
    let third = project.create_goal(&person(), &slug, &contract()).unwrap();
    assert_eq!(third.to_string(), "003-try");
    assert_eq!(project.goals().unwrap().len(), 2);
}

#[test]
fn the_contract_is_approved_by_its_hash() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let goal = fixture.project().load(&id).unwrap();
    assert_eq!(goal.contract_hash, contract_hash(&contract()).unwrap());
    assert_eq!(goal.contract_hash.len(), 64);
    let mut other = contract();
    other.budget.turns += 1;
    assert_ne!(goal.contract_hash, contract_hash(&other).unwrap());
}

#[test]
fn a_listing_is_true_even_when_the_inventory_is_not() {
    let fixture = Fixture::new();
    let done = fixture.approved(&contract());
    fixture.drive(&done, &|effect, _| well(effect));
    fixture.approved(&contract());
    let standings = || -> Vec<String> {
        let listed = fixture.project().goals().unwrap();
        let words = |state| match state {
            ListingStatus::Known(entry) => format!("{} {}", entry.id, entry.status),
            ListingStatus::Damaged(error) => panic!("{error}"),
        };
        listed.into_iter().map(|goal| words(goal.state)).collect()
    };
    let expected = ["001-try done", "002-try active"];
    assert_eq!(standings(), expected);
    let inventory = fixture.project().layout.inventory();
    let stale = String::from_utf8(fixture.disk.snapshot()[&inventory].clone())
        .unwrap()
        .replace("\"active\"", "\"proposed\"");
    for content in ["", "nonsense", stale.as_str()] {
        replace_derived(&fixture.disk, &inventory, content.as_bytes()).unwrap();
        assert_eq!(standings()[..2], expected, "{content:?}");
        // The next command makes it whole again.
        let third = fixture.approved(&contract());
        fixture
            .project()
            .submit(&third, &person(), &GoalCommand::Cancel { reason: None })
            .unwrap();
        let read = fixture.project().inventory().unwrap();
        assert_eq!(read.find(&third).unwrap().status, GoalStatus::Cancelled);
        assert_eq!(read.find(&done).unwrap().status, GoalStatus::Done);
    }
}

#[test]
fn a_log_can_be_followed() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    let project = fixture.project();
    let mut cursor = LogCursor::default();
    let mut more = || -> Vec<String> {
        let logged = project.log_since(&id, &mut cursor).unwrap();
        logged.iter().map(|logged| kind(&logged.event)).collect()
    };
    assert_eq!(more(), ["goal_created", "contract_approved"]);
    assert_eq!(more(), Vec::<String>::new());
    fixture
        .project()
        .submit(&id, &person(), &GoalCommand::Cancel { reason: None })
        .unwrap();
    assert_eq!(more(), ["goal_stopped"]);
}

#[test]
fn what_a_crash_left_undone_is_written_by_the_next_drive() {
    let fixture = Fixture::new();
    let id = fixture.approved(&contract());
    fixture.drive(&id, &|effect, _| well(effect));
    let whole = fixture.disk.snapshot();
    let layout = fixture.project().layout.goal(&id);
    for file in [
        layout.state(),
        layout.snapshot(),
        layout.contract(),
        fixture.project().layout.inventory(),
    ] {
        fixture.disk.write(&file, b"").unwrap();
        fixture
            .disk
            .rename(&file, &file.with_extension("gone"))
            .unwrap();
        fixture.drive(&id, &|effect, _| panic!("{} was performed", effect.id));
        let mended = fixture.disk.snapshot();
        if file.ends_with("inventory.json") {
            assert!(mended.contains_key(&file));
        } else {
            assert_eq!(mended.get(&file), whole.get(&file), "{}", file.display());
        }
    }
}
