//! The spend ledger: one stream for the whole machine, written by every process that spends.
//!
//! Each request takes the stream's lock over load, decide and append, so that two processes cannot
//! grant the same money. Holds no state between two requests; knows no prices and no agents.

pub mod audit;
pub mod error;
mod logged;

use std::collections::BTreeSet;
use std::path::PathBuf;

use kapi_core::actor::Actor;
use kapi_core::spend::account::ReservationId;
use kapi_core::spend::books::Books;
use kapi_core::spend::caps::Caps;
use kapi_core::spend::decide::{self, Answer, Request, Room};
use kapi_core::spend::event::{Question, SpendEvent, Used};
use kapi_store::layout::HomeLayout;
use kapi_store::record::Batch;
use kapi_store::stream::{Cursor, Stream};
use kapi_sys::clock::Clock;
use kapi_sys::disk::Disk;
use kapi_sys::lock::Lock;

use crate::machine::file_log::LOCK_WAIT_MS;
use crate::machine::logged::read;
use crate::places::{Place, Places};
use crate::spend::error::LedgerError;

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
            let mut opened = Opened::load(&home)?;
            // Whoever had this place before is gone, and what they reserved with them.
            let mut living = home.living(&place, &opened.books)?;
            living.remove(&place.number);
            opened.recover(&held, &living, home.clock.now_ms())?;
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
        let mut opened = Opened::load(home)?;
        let living = home.living(&self.place, &opened.books)?;
        let now_ms = home.clock.now_ms();
        opened.recover(&held, &living, now_ms)?;
        let place = self.place.number;
        let (answer, events) = decide::reserve(&opened.books, request, caps, place, now_ms);
        opened.record(&held, &Actor::Engine, &events, now_ms)?;
        Ok(answer)
    }

    /// Notes what a turn has used so far, and tells whether it may go on.
    ///
    /// # Errors
    /// When the log is damaged or the disk refuses.
    pub fn meter(&self, id: &ReservationId, used: &Used, caps: &Caps) -> Result<Room, LedgerError> {
        let opened = self.home.submit(&Actor::Engine, |books, _| {
            Ok(decide::meter(books, id, used))
        })?;
        Ok(decide::room(
            &opened.books,
            id,
            caps,
            self.home.clock.now_ms(),
        ))
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
        Ok(Opened::load(self)?.books)
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

    fn stream(&self) -> Stream<'_> {
        Stream {
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

    /// Decides on the latest books and makes the events durable.
    fn submit(
        &self,
        actor: &Actor,
        decide: impl FnOnce(&Books, i64) -> Result<Vec<SpendEvent>, LedgerError>,
    ) -> Result<Opened<'_>, LedgerError> {
        let held = self.hold()?;
        let mut opened = Opened::load(self)?;
        let now_ms = self.clock.now_ms();
        let events = decide(&opened.books, now_ms)?;
        opened.record(&held, actor, &events, now_ms)?;
        Ok(opened)
    }
}

/// The stream and its fold, for the time of one request.
struct Opened<'a> {
    stream: Stream<'a>,
    cursor: Cursor,
    books: Books,
    /// Records after the fold on disk.
    n_unfolded: usize,
}

impl<'a> Opened<'a> {
    fn load(home: &'a LedgerHome<'_>) -> Result<Self, LedgerError> {
        let stream = home.stream();
        let mut loaded = stream.load()?;
        let read = |state: &serde_json::value::RawValue| serde_json::from_str(state.get()).ok();
        let mut books: Option<Books> = loaded.state.as_deref().and_then(read);
        if loaded.state.is_some() && books.is_none() {
            // The fold has another shape: it is made anew from the log.
            loaded = stream.load_all()?;
            books = None;
        }
        let mut books = books.unwrap_or_default();
        for logged in read::<SpendEvent>(&stream.log(), &loaded.records)? {
            books.evolve(&logged.event, logged.at_ms);
        }
        Ok(Self {
            stream,
            cursor: loaded.cursor,
            books,
            n_unfolded: loaded.records.len(),
        })
    }

    /// Ends what processes that are not among the living have reserved.
    fn recover(
        &mut self,
        held: &Lock,
        living: &BTreeSet<u32>,
        now_ms: i64,
    ) -> Result<(), LedgerError> {
        let events = decide::recover(&self.books, living, now_ms);
        self.record(held, &Actor::Engine, &events, now_ms)
    }

    fn record(
        &mut self,
        held: &Lock,
        actor: &Actor,
        events: &[SpendEvent],
        at_ms: i64,
    ) -> Result<(), LedgerError> {
        // What others wrote was acted on, so it must not be lost if this machine stops now.
        self.stream.settle(held, &mut self.cursor)?;
        if events.is_empty() {
            return Ok(());
        }
        let payloads = events
            .iter()
            .map(logged::payload)
            .collect::<Result<_, _>>()?;
        let batch = Batch {
            actor,
            at_ms,
            payloads,
        };
        self.stream.append(held, &mut self.cursor, &batch)?;
        for event in events {
            self.books.evolve(event, at_ms);
        }
        self.n_unfolded += events.len();
        if self.n_unfolded >= FOLD_EVERY {
            let state = logged::state(&self.books)?;
            self.stream.save(held, &self.cursor, state)?;
            self.n_unfolded = 0;
        }
        Ok(())
    }
}
