//! Instants as the clock on the wall shows them.
//!
//! The zone is the machine's: `TZ`, or where /etc/localtime leads. Without either it is UTC.

use jiff::Timestamp;
use jiff::tz::TimeZone;
use kapi_task::record::zone;

/// The clock on the wall.
#[derive(Debug, Clone)]
pub(super) struct Wall {
    zone: TimeZone,
}

impl Wall {
    /// Finds out in which zone this machine is.
    pub(super) fn new() -> Self {
        Self {
            zone: zone::local(),
        }
    }

    /// Returns an instant as `Mon 23 Nov 02:30`, with the year where it is another.
    pub(super) fn show(&self, at_ms: i64, now_ms: i64) -> String {
        let Ok(at) = Timestamp::from_millisecond(at_ms) else {
            return "never".to_owned();
        };
        let at = at.to_zoned(self.zone.clone());
        let now = Timestamp::from_millisecond(now_ms).map(|now| now.to_zoned(self.zone.clone()));
        let is_this_year = now.is_ok_and(|now| now.year() == at.year());
        let has_seconds = at.second() != 0;
        let date = if is_this_year {
            "%a %-d %b"
        } else {
            "%a %-d %b %Y"
        };
        let time = if has_seconds { "%H:%M:%S" } else { "%H:%M" };
        at.strftime(&format!("{date} {time}")).to_string()
    }
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::Wall;

    #[test]
    fn an_instant_is_shown_as_the_wall_shows_it() {
        let zone = TimeZone::get("Europe/Berlin").unwrap();
        let wall = Wall { zone };
        // 22 November 2026, 08:00 UTC.
        let now_ms = 1_795_334_400_000;
        assert_eq!(wall.show(now_ms, now_ms), "Sun 22 Nov 09:00");
        assert_eq!(wall.show(now_ms + 2_000, now_ms), "Sun 22 Nov 09:00:02");
        let later_ms = now_ms + 60 * 86_400_000;
        assert_eq!(wall.show(later_ms, now_ms), "Thu 21 Jan 2027 09:00");
    }
}
