//! A full check finds every changed byte and names its line.

use kapi_store::audit::audit;
use kapi_sys::disk::Disk as _;
use kapi_sys::sim_disk::SimDisk;

use crate::support::{chain, log, record, sim_disk, stream};

fn three_batches() -> SimDisk {
    let disk = sim_disk();
    for numbers in [&[1][..], &[2, 3], &[4]] {
        record(&stream(&disk), numbers).unwrap();
    }
    disk
}

fn faults(disk: &SimDisk) -> Vec<String> {
    let prefix = format!("trust {} ", log().display());
    let faults = audit(&stream(disk)).unwrap().faults;
    faults
        .iter()
        .map(|fault| chain(fault).replace(&prefix, ""))
        .collect()
}

#[test]
fn a_sound_log_has_no_faults() {
    let disk = three_batches();
    let before = disk.snapshot();
    let found = audit(&stream(&disk)).unwrap();
    assert_eq!(
        (found.records.len(), found.faults.len(), found.torn_bytes),
        (4, 0, 0)
    );
    assert_eq!(disk.snapshot(), before);
}

#[test]
fn every_changed_byte_is_reported_with_its_line() {
    let whole = three_batches().snapshot()[&log()].clone();
    let mut line = 1;
    for offset in 0..whole.len() {
        for bit in [1, 2, 0x20, 0x80] {
            let disk = three_batches();
            let mut bytes = whole.clone();
            bytes[offset] ^= bit;
            disk.write(&log(), &bytes).unwrap();
            let found = audit(&stream(&disk)).unwrap();
            let lines: Vec<u64> = found.faults.iter().map(|fault| fault.line).collect();
            assert!(
                lines.contains(&line),
                "byte {offset} bit {bit:#x} of line {line}: {lines:?}"
            );
        }
        line += u64::from(whole[offset] == b'\n');
    }
}

#[test]
fn a_changed_value_is_blamed_on_its_own_line_only() {
    let disk = three_batches();
    let text = String::from_utf8(disk.snapshot()[&log()].clone()).unwrap();
    disk.write(
        &log(),
        text.replace("\"number\":2", "\"number\":7").as_bytes(),
    )
    .unwrap();
    assert_eq!(
        faults(&disk),
        ["at line 2: the line was changed after it was accepted"]
    );
}

#[test]
fn a_missing_line_is_reported() {
    let disk = three_batches();
    let text = String::from_utf8(disk.snapshot()[&log()].clone()).unwrap();
    let without: String = text
        .lines()
        .enumerate()
        .filter(|(idx, _)| *idx != 1)
        .map(|(_, line)| format!("{line}\n"))
        .collect();
    disk.write(&log(), without.as_bytes()).unwrap();
    assert_eq!(
        faults(&disk),
        [
            "at line 2: the record has number 3 where 2 was expected",
            "at line 4: the log has 606 bytes, 820 were accepted"
        ]
    );
}

#[test]
fn a_shortened_log_is_reported() {
    let disk = three_batches();
    let text = String::from_utf8(disk.snapshot()[&log()].clone()).unwrap();
    let first = text.lines().next().unwrap().len() + 1;
    disk.truncate(&log(), first as u64).unwrap();
    assert_eq!(
        faults(&disk),
        ["at line 4: the log has 202 bytes, 820 were accepted"]
    );
}

#[test]
fn an_unfinished_tail_is_no_fault() {
    let disk = three_batches();
    disk.append(&log(), b"{\"v\":1,").unwrap();
    let found = audit(&stream(&disk)).unwrap();
    assert_eq!(
        (found.records.len(), found.faults.len(), found.torn_bytes),
        (4, 0, 7)
    );
}
