//! The spend ledger: one stream for the whole machine, written by every process that spends.
//!
//! Each request takes the stream's lock over load, decide and append, so that two processes cannot
//! grant the same money. Holds no state between two requests; knows no prices and no agents.

pub mod audit;
pub mod error;

use std::collections::BTreeSet;
use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_core::room::CallClaim;
use kapi_machine::file_log::LOCK_WAIT_MS;
use kapi_machine::logged::EventRecord;
use kapi_machine::machine::Machine;
use kapi_machine::opened::OpenStream;
use kapi_machine::slots::{MachineSlot, SlotDirectory};
use kapi_store::layout::HomeLayout;
use kapi_store::stream::LogStream;
use kapi_sys::clock::Clock;
use kapi_sys::disk::Disk;
use kapi_sys::lock::Lock;

use crate::record::error::LedgerError;
use crate::rules::account::ReservationId;
use crate::rules::caps::Caps;
use crate::rules::decide;
use crate::rules::decide::{SpendAnswer, SpendRequest, TurnAllowance};
use crate::rules::event::{SpendEvent, SpendPermit, TurnUsage};
use crate::rules::totals::LedgerTotals;

/// Records after which the fold is written anew, so that little is read each time.
const FOLD_EVERY: usize = 16;

/// Where the ledger is, seen by one process.
#[derive(Clone)]
pub struct LedgerHome<'a> {
    /// The disk.
    pub disk: &'a dyn Disk,
    /// The clock.
    pub clock: &'a dyn Clock,
    /// The person's home, which is there.
    pub home: PathBuf,
    /// What other processes are told about who holds a lock ("kapi run").
    pub owner: String,
}

/// The ledger, opened to spend. While it is open, what it reserved counts as under way; when the
/// process ends, however it ends, its reservations are settled by whoever looks next.
pub struct Ledger<'a> {
    home: LedgerHome<'a>,
    location: MachineSlot,
}

impl<'a> Ledger<'a> {
    /// Opens the ledger below a person's home, and ends what processes that are gone left open.
    ///
    /// # Errors
    /// When the log is damaged, the disk refuses, or too many processes spend at once.
    pub fn open(home: LedgerHome<'a>) -> Result<Self, LedgerError> {
        let location = {
            let held = home.hold()?;
            let location = home.locations().claim()?;
            let mut open = home.load()?;
            // Whoever had this place before is gone, and what they reserved with them.
            let mut living = home.living(&location, open.state())?;
            living.remove(&location.number);
            recover(&mut open, &held, &living, home.clock.now_ms())?;
            location
        };
        Ok(Self { home, location })
    }

    /// Asks whether a turn may spend; what is granted is durable before this returns.
    ///
    /// A grant belongs to the request's id: asking again under the same id books what the earlier
    /// one had reported, and replaces it.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses; nothing is granted then.
    pub fn reserve(&self, request: &SpendRequest, caps: &Caps) -> Result<SpendAnswer, LedgerError> {
        let home = &self.home;
        let held = home.hold()?;
        let mut open = home.load()?;
        let living = home.living(&self.location, open.state())?;
        let now_ms = home.clock.now_ms();
        recover(&mut open, &held, &living, now_ms)?;
        let location = self.location.number;
        let (answer, events) = decide::reserve(open.state(), request, caps, location, now_ms);
        record(&mut open, &held, &Actor::Engine, now_ms, &events)?;
        Ok(answer)
    }

    /// Notes what a turn has used so far, and tells whether it may go on.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn meter(
        &self,
        id: &ReservationId,
        used: &TurnUsage,
        caps: &Caps,
    ) -> Result<TurnAllowance, LedgerError> {
        let totals = self.home.submit(&Actor::Engine, |totals, _| {
            Ok(decide::meter(totals, id, used))
        })?;
        Ok(decide::allowance(
            &totals,
            id,
            caps,
            self.home.clock.now_ms(),
        ))
    }

    /// Notes what a turn has used so far and what its model calls under way may use more, and tells
    /// whether it may go on. What is noted is durable before this returns.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn claim(
        &self,
        id: &ReservationId,
        used: &TurnUsage,
        claim: &CallClaim,
        caps: &Caps,
    ) -> Result<TurnAllowance, LedgerError> {
        let totals = self.home.submit(&Actor::Engine, |totals, _| {
            Ok(decide::claim(totals, id, used, claim))
        })?;
        let now_ms = self.home.clock.now_ms();
        Ok(decide::allowance(&totals, id, caps, now_ms))
    }

    /// Books what a turn has used in all and ends its reservation; doing it again does nothing.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn settle(&self, id: &ReservationId, used: &TurnUsage) -> Result<(), LedgerError> {
        self.home.submit(&Actor::Engine, |totals, _| {
            Ok(decide::settle(totals, id, used))
        })?;
        Ok(())
    }

    /// Ends the reservation of a turn that used nothing; doing it again does nothing.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn release(&self, id: &ReservationId) -> Result<(), LedgerError> {
        self.home
            .submit(&Actor::Engine, |totals, _| Ok(decide::release(totals, id)))?;
        Ok(())
    }

    /// Returns the books as they are now.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn totals(&self) -> Result<LedgerTotals, LedgerError> {
        self.home.totals()
    }
}

impl LedgerHome<'_> {
    /// Returns the books as they are now. Changes nothing, and needs no lock.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn totals(&self) -> Result<LedgerTotals, LedgerError> {
        Ok(self.load()?.into_state())
    }

    /// Records a person's word that turns may go on for today.
    ///
    /// # Errors
    /// When it is not a person who says so, the log is damaged or the disk refuses.
    pub fn allow(&self, actor: &Actor, question: SpendPermit) -> Result<(), LedgerError> {
        self.submit(actor, |totals, now_ms| {
            Ok(decide::allow(actor, totals, question, now_ms)?)
        })?;
        Ok(())
    }

    /// Returns the ledger's directory.
    #[must_use]
    pub fn dir(&self) -> PathBuf {
        HomeLayout::new(&self.home).state_dir().join("spend")
    }

    fn stream(&self) -> LogStream<'_> {
        LogStream {
            disk: self.disk,
            name: "spend".to_owned(),
            dir: self.dir(),
            anchor: self.home.clone(),
        }
    }

    fn locations(&self) -> SlotDirectory<'_> {
        SlotDirectory {
            disk: self.disk,
            dir: self.dir().join("holders"),
            owner: self.owner.clone(),
        }
    }

    /// Returns the places among those in the books whose process is there, and this one.
    fn living(
        &self,
        own: &MachineSlot,
        totals: &LedgerTotals,
    ) -> Result<BTreeSet<u32>, LedgerError> {
        let others = totals.open.values().map(|open| open.holder).collect();
        Ok(self.locations().living(own.number, &others)?)
    }

    fn hold(&self) -> Result<Lock, LedgerError> {
        Ok(self.stream().lock(&self.owner, LOCK_WAIT_MS)?)
    }

    fn load(&self) -> Result<OpenBooks<'_>, LedgerError> {
        Ok(OpenStream::load(self.stream())?)
    }

    /// Decides on the latest books, makes the events durable and returns the books then.
    fn submit(
        &self,
        actor: &Actor,
        decide: impl FnOnce(&LedgerTotals, i64) -> Result<Vec<SpendEvent>, LedgerError>,
    ) -> Result<LedgerTotals, LedgerError> {
        let held = self.hold()?;
        let mut open = self.load()?;
        let now_ms = self.clock.now_ms();
        let events = decide(open.state(), now_ms)?;
        record(&mut open, &held, actor, now_ms, &events)?;
        Ok(open.into_state())
    }
}

/// What the books are folded of.
#[derive(Debug)]
pub struct SpendMachine;

impl Machine for SpendMachine {
    type State = LedgerTotals;
    type Event = SpendEvent;
    const EVENT: &'static str = "a spend event";
    const STATE: &'static str = "the books";

    fn evolve(totals: &mut LedgerTotals, logged: &EventRecord<SpendEvent>) {
        totals.evolve(&logged.event, logged.at_ms);
    }
}

/// The stream and its fold, for the time of one request.
type OpenBooks<'a> = OpenStream<'a, SpendMachine>;

/// Ends what processes that are not among the living have reserved.
fn recover(
    open: &mut OpenBooks<'_>,
    held: &Lock,
    living: &BTreeSet<u32>,
    now_ms: i64,
) -> Result<(), LedgerError> {
    let events = decide::recover(open.state(), living, now_ms);
    record(open, held, &Actor::Engine, now_ms, &events)
}

fn record(
    open: &mut OpenBooks<'_>,
    held: &Lock,
    actor: &Actor,
    at_ms: i64,
    events: &[SpendEvent],
) -> Result<(), LedgerError> {
    // What others wrote was acted on, so it must not be lost if this machine stops now.
    open.settle(held)?;
    open.record(held, actor, at_ms, events)?;
    if !events.is_empty() && open.fold().n_unsaved() >= FOLD_EVERY {
        let saved = open.save(held).map_err(LedgerError::from);
        saved.map_err(|error| LedgerError::NotDerived(Box::new(error)))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
