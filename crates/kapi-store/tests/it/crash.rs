//! Power failures at every operation of the store, and again during what follows.

use kapi_sys::sim_disk::{Mutation, SimDisk, Survival};

use crate::support::{number, record, sim_disk, stream};

const BATCHES: [&[u32]; 4] = [&[1], &[2, 3], &[4], &[5, 6, 7]];

/// Records the batches after those that are there, until it is done or the power fails. Returns
/// how many batches are acknowledged: those before a record that succeeded, and that one.
fn write_batches(disk: &SimDisk) -> usize {
    let stream = stream(disk);
    let Ok(loaded) = stream.load_all() else {
        return 0;
    };
    let mut acknowledged = 0;
    let mut before = 0;
    for (idx, batch) in BATCHES.iter().enumerate() {
        if before >= loaded.records.len() {
            if record(&stream, batch).is_err() {
                break;
            }
            acknowledged = idx + 1;
        }
        before += batch.len();
    }
    acknowledged
}

fn prefix(batches: usize) -> Vec<u32> {
    BATCHES[..batches].concat()
}

/// What must hold after a reboot: every acknowledged batch is there, and no part of another.
fn check(disk: &SimDisk, acknowledged: usize, context: &str) -> Result<usize, String> {
    let loaded = stream(disk)
        .load_all()
        .map_err(|error| format!("{context}: {error}"))?;
    let found: Vec<u32> = loaded.records.iter().map(number).collect();
    let whole = (0..=BATCHES.len()).find(|batches| prefix(*batches) == found);
    match whole {
        Some(batches) if batches >= acknowledged => Ok(batches),
        Some(_) | None => Err(format!(
            "{context}: {found:?} with {acknowledged} acknowledged"
        )),
    }
}

const SURVIVALS: [Survival; 6] = [
    Survival::Nothing,
    Survival::TornPrefix(1),
    Survival::TornPrefix(2),
    Survival::TornPrefix(3),
    Survival::Everything,
    Survival::PageCache,
];

/// Crashes once at `first`, once more `second` operations later, and then goes on to the end.
fn crash_twice(
    first: (u64, Survival),
    second: (u64, Survival),
    mutation: Option<&Mutation>,
) -> Result<(), String> {
    let context = format!("crash at {first:?}, then {second:?}");
    let disk = sim_disk();
    if let Some(mutation) = mutation {
        disk.set_mutation(mutation.clone());
    }
    disk.crash_at(first.0, first.1);
    let mut acknowledged = write_batches(&disk);
    disk.crash_now(first.1);
    disk.reboot();
    check(&disk, acknowledged, &context)?;
    disk.crash_at(disk.ops() + second.0, second.1);
    acknowledged = write_batches(&disk).max(acknowledged);
    disk.crash_now(second.1);
    disk.reboot();
    check(&disk, acknowledged, &context)?;
    write_batches(&disk);
    match check(&disk, acknowledged, &context)? {
        batches if batches == BATCHES.len() => Ok(()),
        batches => Err(format!("{context}: ended with {batches} batches")),
    }
}

fn n_ops() -> u64 {
    let disk = sim_disk();
    assert_eq!(write_batches(&disk), BATCHES.len());
    disk.ops()
}

fn first_fault(mutation: Option<&Mutation>) -> Result<(), String> {
    let n_ops = n_ops();
    for (first, survival) in (0..=n_ops).flat_map(|op| SURVIVALS.map(|survival| (op, survival))) {
        for second in 0..=n_ops - first {
            // Every policy at every pair would say the same many times over.
            let then = match (first + second) % 2 {
                0 => Survival::Nothing,
                _ => Survival::TornPrefix(first * 31 + second),
            };
            crash_twice((first, survival), (second, then), mutation)?;
        }
    }
    Ok(())
}

#[test]
fn two_power_failures_lose_nothing_acknowledged() {
    first_fault(None).unwrap();
}

#[test]
fn the_crash_test_sees_planted_mistakes() {
    for mutation in [
        Mutation::SkipFileSync,
        Mutation::SkipDirSync,
        Mutation::SkipTruncate,
    ] {
        assert!(
            first_fault(Some(&mutation)).is_err(),
            "{mutation:?} was not noticed"
        );
    }
}
