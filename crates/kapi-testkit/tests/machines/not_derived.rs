//! What was recorded although what follows from it could not be written: whoever asked is told so,
//! and not that nothing was accepted.

use std::path::Path;

use kapi_spend::record::Ledger;
use kapi_spend::record::error::LedgerError;
use kapi_spend::rules::decide::SpendAnswer;
use kapi_sys::sim_disk::Survival;
use kapi_task::record::error::KernelError;
use kapi_task::record::queue::Queue;
use kapi_task::rules::command::{Admission, KernelCommand, Overflow};

use crate::kernel_worker::{person, project, request};
use crate::spend::{capped, ledger_home, request as wish};
use crate::support::{Fixture, ROOT};

/// More operations than letting in a task takes.
const OPS: u64 = 20;
/// Records after which the ledger's fold is written.
const RECORDS: u64 = 16;

#[test]
fn a_task_that_was_let_in_is_never_said_to_be_refused() {
    let mut n_not_derived = 0;
    for op in 0..OPS {
        let fixture = Fixture::new();
        let project = project(&fixture.disk, &fixture.clock);
        let mut queue = Queue::open(&project).unwrap();
        let submit = KernelCommand::Submit {
            request: Box::new(request(1)),
            admission: Admission {
                tasks_max: 10,
                overflow: Overflow::Queue,
                running_max: 1,
            },
        };
        fixture
            .disk
            .crash_at(fixture.disk.ops() + op, Survival::Nothing);
        let submitted = queue.submit(&person(), &submit);
        fixture.disk.crash_now(Survival::Nothing);
        fixture.disk.reboot();
        let is_there = !Queue::open(&project).unwrap().kernel().tasks.is_empty();
        let is_reported = match submitted {
            Ok(_) => true,
            Err(KernelError::NotDerived(_)) => {
                n_not_derived += 1;
                true
            }
            Err(_) => false,
        };
        assert_eq!(is_there, is_reported, "operation {op}");
    }
    assert!(n_not_derived > 0, "the fold follows the first task");
}

#[test]
fn money_that_was_reserved_is_never_said_to_be_refused() {
    let mut n_not_derived = 0;
    for op in 0.. {
        let fixture = Fixture::new();
        let home = || ledger_home(&fixture.disk, &fixture.clock, Path::new(ROOT));
        let ledger = Ledger::open(home()).unwrap();
        fixture
            .disk
            .crash_at(fixture.disk.ops() + op, Survival::Nothing);
        let mut n_reported = 0;
        for number in 0..RECORDS {
            let wish = wish("a", &format!("turn-{number}"), 10);
            match ledger.reserve(&wish, &capped(1_000)) {
                Ok(answer) => assert!(matches!(answer, SpendAnswer::Granted { .. })),
                Err(LedgerError::NotDerived(_)) => n_not_derived += 1,
                Err(_) => break,
            }
            n_reported += 1;
        }
        let is_over = !fixture.disk.is_crashed();
        fixture.disk.crash_now(Survival::Nothing);
        fixture.disk.reboot();
        assert_eq!(
            home().totals().unwrap().open.len(),
            n_reported,
            "operation {op}"
        );
        if is_over {
            break;
        }
    }
    assert!(n_not_derived > 0, "the fold follows the last record");
}
