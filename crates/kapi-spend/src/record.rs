//! The spend ledger: one stream for the whole machine, written by every process that spends.
//!
//! Each request takes the stream's lock over load, decide and append, so that two processes cannot
//! grant the same money. Holds no state between two requests; knows no prices and no agents.

pub mod audit;
pub mod error;

use std::collections::BTreeSet;
use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_machine::file_log::LOCK_WAIT_MS;
use kapi_machine::logged::Logged;
use kapi_machine::machine::Machine;
use kapi_machine::opened::Opened;
use kapi_machine::places::{Place, Places};
use kapi_store::layout::HomeLayout;
use kapi_store::stream::LogStream;
use kapi_sys::clock::Clock;
use kapi_sys::disk::Disk;
use kapi_sys::lock::Lock;

use crate::record::error::LedgerError;
use crate::rules::account::ReservationId;
use crate::rules::books::Books;
use crate::rules::caps::Caps;
use crate::rules::decide;
use crate::rules::decide::{Answer, Request, Room};
use crate::rules::event::{Question, SpendEvent, Used};

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
    place: Place,
}

impl<'a> Ledger<'a> {
    /// Opens the ledger below a person's home, and ends what processes that are gone left open.
    ///
    /// # Errors
    /// When the log is damaged, the disk refuses, or too many processes spend at once.
    pub fn open(home: LedgerHome<'a>) -> Result<Self, LedgerError> {
        let place = {
            let held = home.hold()?;
            let place = home.places().claim()?;
            let mut open = home.load()?;
            // Whoever had this place before is gone, and what they reserved with them.
            let mut living = home.living(&place, open.state())?;
            living.remove(&place.number);
            recover(&mut open, &held, &living, home.clock.now_ms())?;
            place
        };
        Ok(Self { home, place })
    }

    /// Asks whether a turn may spend; what is granted is durable before this returns.
    ///
    /// A grant belongs to the request's id: asking again under the same id books what the earlier
    /// one had reported, and replaces it.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses; nothing is granted then.
    pub fn reserve(&self, request: &Request, caps: &Caps) -> Result<Answer, LedgerError> {
        let home = &self.home;
        let held = home.hold()?;
        let mut open = home.load()?;
        let living = home.living(&self.place, open.state())?;
        let now_ms = home.clock.now_ms();
        recover(&mut open, &held, &living, now_ms)?;
        let place = self.place.number;
        let (answer, events) = decide::reserve(open.state(), request, caps, place, now_ms);
        record(&mut open, &held, &Actor::Engine, now_ms, &events)?;
        Ok(answer)
    }

    /// Notes what a turn has used so far, and tells whether it may go on.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn meter(&self, id: &ReservationId, used: &Used, caps: &Caps) -> Result<Room, LedgerError> {
        let books = self.home.submit(&Actor::Engine, |books, _| {
            Ok(decide::meter(books, id, used))
        })?;
        Ok(decide::room(&books, id, caps, self.home.clock.now_ms()))
    }

    /// Books what a turn has used in all and ends its reservation; doing it again does nothing.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn settle(&self, id: &ReservationId, used: &Used) -> Result<(), LedgerError> {
        self.home.submit(&Actor::Engine, |books, _| {
            Ok(decide::settle(books, id, used))
        })?;
        Ok(())
    }

    /// Ends the reservation of a turn that used nothing; doing it again does nothing.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn release(&self, id: &ReservationId) -> Result<(), LedgerError> {
        self.home
            .submit(&Actor::Engine, |books, _| Ok(decide::release(books, id)))?;
        Ok(())
    }

    /// Returns the books as they are now.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn books(&self) -> Result<Books, LedgerError> {
        self.home.books()
    }
}

impl LedgerHome<'_> {
    /// Returns the books as they are now. Changes nothing, and needs no lock.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn books(&self) -> Result<Books, LedgerError> {
        Ok(self.load()?.into_state())
    }

    /// Records a person's word that turns may go on for today.
    ///
    /// # Errors
    /// When it is not a person who says so, the log is damaged or the disk refuses.
    pub fn allow(&self, actor: &Actor, question: Question) -> Result<(), LedgerError> {
        self.submit(actor, |books, now_ms| {
            Ok(decide::allow(actor, books, question, now_ms)?)
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

    fn places(&self) -> Places<'_> {
        Places {
            disk: self.disk,
            dir: self.dir().join("holders"),
            owner: self.owner.clone(),
        }
    }

    /// Returns the places among those in the books whose process is there, and this one.
    fn living(&self, own: &Place, books: &Books) -> Result<BTreeSet<u32>, LedgerError> {
        let others = books.open.values().map(|open| open.holder).collect();
        Ok(self.places().living(own.number, &others)?)
    }

    fn hold(&self) -> Result<Lock, LedgerError> {
        Ok(self.stream().lock(&self.owner, LOCK_WAIT_MS)?)
    }

    fn load(&self) -> Result<OpenBooks<'_>, LedgerError> {
        Ok(Opened::load(self.stream())?)
    }

    /// Decides on the latest books, makes the events durable and returns the books then.
    fn submit(
        &self,
        actor: &Actor,
        decide: impl FnOnce(&Books, i64) -> Result<Vec<SpendEvent>, LedgerError>,
    ) -> Result<Books, LedgerError> {
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
    type State = Books;
    type Event = SpendEvent;
    const EVENT: &'static str = "a spend event";
    const STATE: &'static str = "the books";

    fn evolve(books: &mut Books, logged: &Logged<SpendEvent>) {
        books.evolve(&logged.event, logged.at_ms);
    }
}

/// The stream and its fold, for the time of one request.
type OpenBooks<'a> = Opened<'a, SpendMachine>;

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
