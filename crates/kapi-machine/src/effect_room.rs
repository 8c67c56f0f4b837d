//! What the effects of one drive may still use of its limits, whichever of them comes first.
//!
//! Counted where something is used, so it is never behind; the drive says how much there is in all.
//! Knows no limit by name.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kapi_core::room::{CallClaim, Room};
use kapi_core::usage::Usage;

/// What effects under way share.
#[derive(Debug, Default)]
pub struct EffectRoom(Mutex<RoomState>);

#[derive(Debug, Default)]
struct RoomState {
    /// What there is for all that is used from the beginning of this on.
    limit: Room,
    used: Usage,
    /// What calls under way may still use, by effect.
    claims: BTreeMap<u64, CallClaim>,
    n_effects: u64,
}

/// The share of one effect.
#[derive(Debug)]
pub struct RoomShare<'a> {
    room: &'a EffectRoom,
    number: u64,
}

impl EffectRoom {
    /// Says how much there is for everything that is used since this was made.
    pub fn set_limit(&self, limit: Room) {
        self.state().limit = limit;
    }

    /// Lets one more effect use it.
    pub fn share(&self) -> RoomShare<'_> {
        let mut state = self.state();
        state.n_effects += 1;
        RoomShare {
            room: self,
            number: state.n_effects,
        }
    }

    fn state(&self) -> MutexGuard<'_, RoomState> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RoomShare<'_> {
    /// Counts what the effect used.
    pub fn count(&self, used: &Usage) {
        self.room.state().used.add(used);
    }

    /// Notes what the effect's calls under way may still use, and returns what is left for them.
    pub fn claim(&self, claim: &CallClaim) -> Room {
        let mut state = self.room.state();
        state.claims.insert(self.number, *claim);
        let mut left = state.limit.less_used(&state.used);
        for (number, other) in &state.claims {
            if *number != self.number {
                left = left.less(other);
            }
        }
        left
    }
}

impl Drop for RoomShare<'_> {
    fn drop(&mut self) {
        self.room.state().claims.remove(&self.number);
    }
}

#[cfg(test)]
mod tests {
    use kapi_core::room::{CallClaim, Room};
    use kapi_core::usage::Usage;

    use super::EffectRoom;

    #[test]
    fn effects_side_by_side_share_one_room() {
        let room = EffectRoom::default();
        room.set_limit(Room::left(Some(100), None, &Usage::ZERO));
        let claim = |tokens| CallClaim {
            tokens,
            usd_micros: 0,
        };
        let (one, other) = (room.share(), room.share());
        assert_eq!(one.claim(&claim(60)).tokens, Some(100));
        assert_eq!(other.claim(&claim(0)).tokens, Some(40));
        one.count(&Usage {
            output_tokens: 50,
            ..Usage::ZERO
        });
        assert_eq!(one.claim(&claim(0)).tokens, Some(50));
        assert_eq!(other.claim(&claim(50)).tokens, Some(50));
        assert_eq!(one.claim(&claim(0)).tokens, Some(0));
        drop(other);
        assert_eq!(one.claim(&claim(0)).tokens, Some(50));
        room.set_limit(Room::UNLIMITED);
        assert_eq!(one.claim(&claim(0)), Room::UNLIMITED);
    }
}
