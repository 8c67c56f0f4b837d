//! Which addresses a sandbox may reach once a name was looked up.
//!
//! An allowed name says nothing about where its owner points it. IPv6 is decided by what is known to
//! be public, not by what is known to be private.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AddressClass {
    /// Reachable by everybody.
    Public,
    /// A private network, and what was site-local.
    Private,
    /// This machine.
    Loopback,
    /// The same wire.
    LinkLocal,
    /// A cloud's metadata server, which hands out credentials.
    Metadata,
    /// Behind a carrier's translation, or an overlay network of one's own.
    CarrierShared,
    /// IPv6's private networks.
    UniqueLocal,
    /// Many receivers.
    Multicast,
    /// No address; some systems take it for this machine.
    Unspecified,
    /// Every receiver.
    Broadcast,
    /// Only for texts.
    Documentation,
    /// Set aside, or a way to write another address that nobody honest needs.
    Reserved,
}

/// How far a rule reaches.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum AddressReach {
    /// Public addresses only.
    Public,
    /// Also private addresses of the name that the person wrote.
    PrivateByName,
    /// Also the very address that the person wrote.
    PrivateByAddress,
}

impl AddressReach {
    /// Returns whether an address of `class` may be dialled.
    #[must_use]
    pub fn covers(self, class: AddressClass) -> bool {
        match class {
            AddressClass::Public => true,
            // Nobody routes the addresses of texts, so a network that has them has them for itself.
            AddressClass::Private
            | AddressClass::Loopback
            | AddressClass::CarrierShared
            | AddressClass::UniqueLocal
            | AddressClass::Documentation => self >= Self::PrivateByName,
            // A name's owner could point it at credentials, so the address itself must be written.
            AddressClass::LinkLocal | AddressClass::Metadata => self >= Self::PrivateByAddress,
            AddressClass::Multicast
            | AddressClass::Unspecified
            | AddressClass::Broadcast
            | AddressClass::Reserved => false,
        }
    }
}

impl fmt::Display for AddressClass {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Public => "public",
            Self::Private => "private",
            Self::Loopback => "loopback",
            Self::LinkLocal => "link-local",
            Self::Metadata => "a metadata server",
            Self::CarrierShared => "shared by a carrier",
            Self::UniqueLocal => "unique local",
            Self::Multicast => "multicast",
            Self::Unspecified => "unspecified",
            Self::Broadcast => "broadcast",
            Self::Documentation => "for documentation",
            Self::Reserved => "reserved",
        })
    }
}

/// Returns what an address is for.
#[must_use]
pub fn classify(address: IpAddr) -> AddressClass {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

fn classify_v4(address: Ipv4Addr) -> AddressClass {
    match address.octets() {
        [169, 254, 169, 254] | [169, 254, 170, 2 | 23] => AddressClass::Metadata,
        [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => AddressClass::Metadata,
        [0, ..] => AddressClass::Unspecified,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => AddressClass::Private,
        [100, 64..=127, ..] => AddressClass::CarrierShared,
        [127, ..] => AddressClass::Loopback,
        [169, 254, ..] => AddressClass::LinkLocal,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => AddressClass::Documentation,
        [192, 0, 0, _] | [192, 88, 99, _] | [198, 18 | 19, ..] => AddressClass::Reserved,
        [224..=239, ..] => AddressClass::Multicast,
        [255, 255, 255, 255] => AddressClass::Broadcast,
        [240..=255, ..] => AddressClass::Reserved,
        _ => AddressClass::Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> AddressClass {
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        classify_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => AddressClass::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => AddressClass::Loopback,
        [0, 0, 0, 0, 0, 0xffff, high, low] => embedded(high, low),
        [0, 0, 0, 0, 0xffff, 0, high, low] | [0, 0, 0, 0, 0, 0, high, low] => {
            never_public(embedded(high, low))
        }
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => never_public(embedded(high, low)),
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => {
            AddressClass::Metadata
        }
        [0xfc00..=0xfdff, ..] => AddressClass::UniqueLocal,
        [0xfe80..=0xfebf, ..] => AddressClass::LinkLocal,
        [0xfec0..=0xfeff, ..] => AddressClass::Private,
        [0xff00..=0xffff, ..] => AddressClass::Multicast,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => AddressClass::Documentation,
        // Teredo and the other protocol assignments.
        [0x2001, 0..=0x1ff, ..] => AddressClass::Reserved,
        [0x2000..=0x3fff, ..] => AddressClass::Public,
        _ => AddressClass::Reserved,
    }
}

/// Old spellings of IPv4 addresses are of no use to anybody honest even where they are public.
fn never_public(class: AddressClass) -> AddressClass {
    if class == AddressClass::Public {
        AddressClass::Reserved
    } else {
        class
    }
}

#[cfg(test)]
mod tests {
    use super::{AddressClass, AddressReach, classify};

    fn check(class: AddressClass, addresses: &[&str]) {
        for text in addresses {
            let address = text.parse().expect("an address");
            assert_eq!(classify(address), class, "{text}");
        }
    }

    #[test]
    fn every_address_that_is_not_public_is_known() {
        check(
            AddressClass::Private,
            &[
                "10.0.0.1",
                "172.16.0.1",
                "172.31.255.255",
                "192.168.1.1",
                "fec0::1",
            ],
        );
        check(
            AddressClass::Loopback,
            &["127.0.0.1", "127.255.255.254", "::1"],
        );
        check(
            AddressClass::LinkLocal,
            &["169.254.0.1", "fe80::1", "febf::1"],
        );
        check(
            AddressClass::Metadata,
            &[
                "169.254.169.254",
                "169.254.170.2",
                "100.100.100.200",
                "168.63.129.16",
            ],
        );
        check(
            AddressClass::Metadata,
            &["fd00:ec2::254", "fd20:ce::254", "192.0.0.192"],
        );
        check(
            AddressClass::CarrierShared,
            &["100.64.0.1", "100.127.255.255"],
        );
        check(AddressClass::UniqueLocal, &["fc00::1", "fdff::1"]);
        check(
            AddressClass::Multicast,
            &["224.0.0.1", "239.255.255.255", "ff02::1"],
        );
        check(AddressClass::Unspecified, &["0.0.0.0", "0.1.2.3", "::"]);
        check(AddressClass::Broadcast, &["255.255.255.255"]);
    }

    #[test]
    fn documentation_and_reserved_addresses_are_known() {
        check(
            AddressClass::Documentation,
            &[
                "192.0.2.1",
                "198.51.100.1",
                "203.0.113.1",
                "2001:db8::1",
                "3fff::1",
            ],
        );
        check(
            AddressClass::Reserved,
            &[
                "192.0.0.1",
                "192.88.99.1",
                "198.18.0.1",
                "198.19.0.1",
                "240.0.0.1",
            ],
        );
        check(
            AddressClass::Reserved,
            &[
                "100::1",
                "2001::1",
                "2001:10::1",
                "5f00::1",
                "4000::1",
                "64:ff9b:1::1",
            ],
        );
    }

    #[test]
    fn an_ipv4_address_inside_an_ipv6_one_is_seen() {
        check(
            AddressClass::Loopback,
            &[
                "::ffff:127.0.0.1",
                "::127.0.0.1",
                "64:ff9b::127.0.0.1",
                "2002:7f00:1::",
            ],
        );
        check(
            AddressClass::Metadata,
            &[
                "::ffff:169.254.169.254",
                "64:ff9b::169.254.169.254",
                "2002:a9fe:a9fe::1",
            ],
        );
        check(
            AddressClass::Private,
            &[
                "::ffff:10.0.0.1",
                "::ffff:0:10.0.0.1",
                "2002:c0a8:101::1",
                "::10.0.0.1",
            ],
        );
        check(
            AddressClass::Public,
            &["64:ff9b::1.1.1.1", "::ffff:1.1.1.1"],
        );
        check(AddressClass::Reserved, &["::1.1.1.1", "2002:101:101::1"]);
    }

    #[test]
    fn neighbours_of_private_ranges_are_public() {
        check(
            AddressClass::Public,
            &[
                "1.1.1.1",
                "9.255.255.255",
                "11.0.0.0",
                "172.15.255.255",
                "172.32.0.0",
            ],
        );
        check(
            AddressClass::Public,
            &[
                "100.63.255.255",
                "100.128.0.0",
                "126.255.255.255",
                "128.0.0.0",
            ],
        );
        check(
            AddressClass::Public,
            &[
                "169.253.255.255",
                "223.255.255.255",
                "2606:4700::1",
                "2001:200::1",
            ],
        );
    }

    #[test]
    fn a_private_rule_reaches_private_addresses_and_never_more() {
        assert!(!AddressReach::Public.covers(AddressClass::Loopback));
        assert!(AddressReach::PrivateByName.covers(AddressClass::Loopback));
        assert!(!AddressReach::PrivateByName.covers(AddressClass::Metadata));
        assert!(AddressReach::PrivateByAddress.covers(AddressClass::Metadata));
        for class in [
            AddressClass::Unspecified,
            AddressClass::Multicast,
            AddressClass::Broadcast,
            AddressClass::Reserved,
        ] {
            assert!(!AddressReach::PrivateByAddress.covers(class), "{class}");
        }
    }
}
