//! The program's memory: first a room that is part of the program itself, then an allocator's.
//!
//! Most processes of this binary live for milliseconds and need a few pages. Asking the kernel for those,
//! a page for each size, and giving them back was a tenth of what a sandbox cost to start. Does not
//! give freed memory to others, but for what was taken last, so the room has an end.

#[cfg(not(target_env = "musl"))]
use std::alloc::System;
use std::alloc::{GlobalAlloc, Layout};
use std::cell::UnsafeCell;
use std::ptr;
use std::sync::atomic::{AtomicUsize, Ordering};

// What musl brings asks the kernel for every few pages anew; a large inventory then takes twice as long
// to read.
#[cfg(target_env = "musl")]
use dlmalloc::GlobalDlmalloc as System;

/// Bytes of the room. What was never used of it takes no memory.
const ROOM_BYTES: usize = 512 * 1024;
/// The largest piece that is taken from the room; a few larger ones would fill it.
const PIECE_BYTES_MAX: usize = 64 * 1024;
/// Where the room begins in memory, and so the greatest alignment it can give.
const ALIGNMENT: usize = 64;

/// The memory that is part of the program.
#[repr(align(64))]
struct Room(UnsafeCell<[u8; ROOM_BYTES]>);

#[expect(
    unsafe_code,
    reason = "the room is shared by all threads, and only a raw pointer to it is ever made"
)]
// SAFETY: every piece of the room is handed out to one owner, because the place where the free part
// begins is moved by an atomic exchange before the piece is used.
unsafe impl Sync for Room {}

static ROOM: Room = Room(UnsafeCell::new([0; ROOM_BYTES]));
/// How much of the room is handed out: everything before is owned, everything behind is free.
static USED: AtomicUsize = AtomicUsize::new(0);
/// How much of the room was ever handed out: everything behind is as zero as the program began.
static TOUCHED: AtomicUsize = AtomicUsize::new(0);

/// The allocator of the program.
#[global_allocator]
static ARENA: Arena = Arena;

struct Arena;

/// Whether a piece had an owner before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Past {
    /// It is all zero.
    Untouched,
    /// It holds what the last owner left.
    Owned,
}

impl Arena {
    fn start() -> *mut u8 {
        ROOM.0.get().cast()
    }

    /// Returns how far into the room a piece lies, if it does.
    fn place(piece: *mut u8) -> Option<usize> {
        let place = piece.addr().wrapping_sub(Self::start().addr());
        (place < ROOM_BYTES).then_some(place)
    }

    /// Takes a piece from the free part of the room, if it fits, and tells whether anybody had any of it
    /// before.
    fn take(layout: Layout) -> Option<(*mut u8, Past)> {
        if layout.size() > PIECE_BYTES_MAX || layout.align() > ALIGNMENT {
            return None;
        }
        let mut used = USED.load(Ordering::Relaxed);
        loop {
            let from = used.checked_next_multiple_of(layout.align())?;
            let to = from.checked_add(layout.size())?;
            if to > ROOM_BYTES {
                return None;
            }
            match USED.compare_exchange_weak(used, to, Ordering::Relaxed, Ordering::Relaxed) {
                Ok(_) => {
                    let past = Self::touch(from, to);
                    return Some((Self::start().wrapping_add(from), past));
                }
                Err(now) => used = now,
            }
        }
    }

    /// Notes that what lies between two places has an owner, before the owner can write there.
    fn touch(from: usize, to: usize) -> Past {
        match TOUCHED.fetch_max(to, Ordering::Relaxed) {
            touched if touched <= from => Past::Untouched,
            _ => Past::Owned,
        }
    }

    /// Moves the end of the piece that was taken last, and tells whether this was it.
    fn moved_end(from: usize, to: usize) -> bool {
        let moved = USED.compare_exchange(from, to, Ordering::Relaxed, Ordering::Relaxed);
        if moved.is_ok() && to > from {
            Self::touch(from, to);
        }
        moved.is_ok()
    }
}

#[expect(
    unsafe_code,
    reason = "an allocator is an unsafe promise to everything that allocates"
)]
// SAFETY: a piece of the room is as large and as aligned as asked and has one owner at a time, because
// pieces are cut off by atomic exchanges of where the free part begins; it is free again only when its
// owner gives it back while it ends there. Everything else is the system's own.
unsafe impl GlobalAlloc for Arena {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller's promises are passed on.
        Self::take(layout).map_or_else(|| unsafe { System.alloc(layout) }, |(piece, _)| piece)
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let Some((piece, past)) = Self::take(layout) else {
            // SAFETY: the caller's promises are passed on.
            return unsafe { System.alloc_zeroed(layout) };
        };
        if past == Past::Owned {
            // SAFETY: the piece is ours and as large as this.
            unsafe { ptr::write_bytes(piece, 0, layout.size()) };
        }
        piece
    }

    unsafe fn dealloc(&self, piece: *mut u8, layout: Layout) {
        match Self::place(piece) {
            Some(place) => {
                // Only the last piece is free again; any other stays as it is.
                Self::moved_end(place + layout.size(), place);
            }
            // SAFETY: what is not in the room came from the system.
            None => unsafe { System.dealloc(piece, layout) },
        }
    }

    unsafe fn realloc(&self, piece: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let Some(place) = Self::place(piece) else {
            // SAFETY: what is not in the room came from the system.
            return unsafe { System.realloc(piece, layout, size) };
        };
        let stays = size <= PIECE_BYTES_MAX && place + size <= ROOM_BYTES;
        if stays && Self::moved_end(place + layout.size(), place + size) {
            return piece;
        }
        // SAFETY: the caller promises that the size fits the alignment, that the old piece is as large as
        // its layout says, and that it will not be used again; the new one is not the old one, because
        // the old one has not been given back.
        unsafe {
            let other = self.alloc(Layout::from_size_align_unchecked(size, layout.align()));
            if !other.is_null() {
                ptr::copy_nonoverlapping(piece, other, layout.size().min(size));
                self.dealloc(piece, layout);
            }
            other
        }
    }
}

#[cfg(test)]
mod tests {
    use std::thread;

    /// Grows and drops many collections of all sizes and tells whether each held what was put in.
    fn churn(seed: usize) -> bool {
        let mut kept = Vec::new();
        for round in 0..400 {
            let mut bytes = Vec::new();
            for index in 0..(round * 37 + seed) % 40_000 {
                bytes.push((index * 31 + round + seed).to_le_bytes()[0]);
            }
            if round % 3 == 0 {
                kept.push((round, bytes));
            }
            if round % 7 == 0 {
                kept.reverse();
                kept.pop();
            }
        }
        let held = |(round, bytes): &(usize, Vec<u8>)| {
            let mut all = bytes.iter().enumerate();
            all.all(|(index, byte)| *byte == (index * 31 + round + seed).to_le_bytes()[0])
        };
        kept.iter().all(held)
    }

    #[test]
    fn no_two_owners_share_a_piece() {
        let threads: Vec<_> = (0..4)
            .map(|seed| thread::spawn(move || churn(seed)))
            .collect();
        let held = threads.into_iter().map(|one| one.join().unwrap());
        assert!(held.collect::<Vec<bool>>().into_iter().all(|one| one));
    }

    #[test]
    fn zeroed_memory_is_zero_also_where_something_was() {
        for size in [1, 7, 4096, 16 * 1024, 64 * 1024, 80 * 1024] {
            for _ in 0..20 {
                drop(vec![0xA5_u8; size]);
                assert!(vec![0_u8; size].iter().all(|byte| *byte == 0));
            }
        }
    }
}
