//! The time zones that schedules and windows are meant in, by their names.
//!
//! The rules of the zones come from the machine, or from this program where it has none.

use jiff::tz::TimeZone;

/// What a person writes for the zone of the machine.
const LOCAL: &str = "local";

/// Returns a zone by its name in the IANA database (`Europe/Berlin`), or the machine's for `local`.
///
/// # Errors
/// When there is no such zone.
pub fn zone(name: &str) -> Result<TimeZone, jiff::Error> {
    match name {
        LOCAL => Ok(local()),
        name => TimeZone::get(name),
    }
}

/// Returns the zone of this machine: what `TZ` says, or else `/etc/localtime`; UTC without either.
#[must_use]
pub fn local() -> TimeZone {
    TimeZone::try_system().unwrap_or(TimeZone::UTC)
}

/// Returns what a zone is called.
#[must_use]
pub fn name_of(zone: &TimeZone) -> &str {
    zone.iana_name().unwrap_or(LOCAL)
}

#[cfg(test)]
mod tests {
    use super::{name_of, zone};

    #[test]
    fn the_machine_has_a_zone_that_its_name_stands_for() {
        let local = zone("local").unwrap();
        assert_eq!(zone(name_of(&local)).unwrap(), local);
        assert_eq!(name_of(&zone("Europe/Berlin").unwrap()), "Europe/Berlin");
        assert!(zone("Local").is_err() && zone("Europe/Atlantis").is_err());
    }
}
