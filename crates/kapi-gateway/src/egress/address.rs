//! Which addresses a sandbox may reach once a name was looked up.
//!
//! An allowed name says nothing about where its owner points it. IPv6 is decided by what is known to
//! be public, not by what is known to be private.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// What an address is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Class {
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
pub enum Reach {
    /// Public addresses only.
    Public,
    /// Also private addresses of the name that the person wrote.
    PrivateByName,
    /// Also the very address that the person wrote.
    PrivateByAddress,
}

impl Reach {
    /// Returns whether an address of `class` may be dialled.
    #[must_use]
    pub fn covers(self, class: Class) -> bool {
        match class {
            Class::Public => true,
            // Nobody routes the addresses of texts, so a network that has them has them for itself.
            Class::Private
            | Class::Loopback
            | Class::CarrierShared
            | Class::UniqueLocal
            | Class::Documentation => self >= Self::PrivateByName,
            // A name's owner could point it at credentials, so the address itself must be written.
            Class::LinkLocal | Class::Metadata => self >= Self::PrivateByAddress,
            Class::Multicast | Class::Unspecified | Class::Broadcast | Class::Reserved => false,
        }
    }
}

impl fmt::Display for Class {
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
pub fn classify(address: IpAddr) -> Class {
    match address {
        IpAddr::V4(address) => classify_v4(address),
        IpAddr::V6(address) => classify_v6(address),
    }
}

fn classify_v4(address: Ipv4Addr) -> Class {
    match address.octets() {
        [169, 254, 169, 254] | [169, 254, 170, 2 | 23] => Class::Metadata,
        [100, 100, 100, 200] | [168, 63, 129, 16] | [192, 0, 0, 192] => Class::Metadata,
        [0, ..] => Class::Unspecified,
        [10, ..] | [172, 16..=31, ..] | [192, 168, ..] => Class::Private,
        [100, 64..=127, ..] => Class::CarrierShared,
        [127, ..] => Class::Loopback,
        [169, 254, ..] => Class::LinkLocal,
        [192, 0, 2, _] | [198, 51, 100, _] | [203, 0, 113, _] => Class::Documentation,
        [192, 0, 0, _] | [192, 88, 99, _] | [198, 18 | 19, ..] => Class::Reserved,
        [224..=239, ..] => Class::Multicast,
        [255, 255, 255, 255] => Class::Broadcast,
        [240..=255, ..] => Class::Reserved,
        _ => Class::Public,
    }
}

fn classify_v6(address: Ipv6Addr) -> Class {
    let embedded = |high: u16, low: u16| {
        let [a, b] = high.to_be_bytes();
        let [c, d] = low.to_be_bytes();
        classify_v4(Ipv4Addr::new(a, b, c, d))
    };
    match address.segments() {
        [0, 0, 0, 0, 0, 0, 0, 0] => Class::Unspecified,
        [0, 0, 0, 0, 0, 0, 0, 1] => Class::Loopback,
        [0, 0, 0, 0, 0, 0xffff, high, low] => embedded(high, low),
        [0, 0, 0, 0, 0xffff, 0, high, low] | [0, 0, 0, 0, 0, 0, high, low] => {
            never_public(embedded(high, low))
        }
        [0x64, 0xff9b, 0, 0, 0, 0, high, low] => embedded(high, low),
        [0x2002, high, low, ..] => never_public(embedded(high, low)),
        [0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254] | [0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254] => {
            Class::Metadata
        }
        [0xfc00..=0xfdff, ..] => Class::UniqueLocal,
        [0xfe80..=0xfebf, ..] => Class::LinkLocal,
        [0xfec0..=0xfeff, ..] => Class::Private,
        [0xff00..=0xffff, ..] => Class::Multicast,
        [0x2001, 0xdb8, ..] | [0x3fff, 0..=0xfff, ..] => Class::Documentation,
        // Teredo and the other protocol assignments.
        [0x2001, 0..=0x1ff, ..] => Class::Reserved,
        [0x2000..=0x3fff, ..] => Class::Public,
        _ => Class::Reserved,
    }
}

/// Old spellings of IPv4 addresses are of no use to anybody honest even where they are public.
fn never_public(class: Class) -> Class {
    if class == Class::Public {
        Class::Reserved
    } else {
        class
    }
}

#[cfg(test)]
mod tests {
    use super::{Class, Reach, classify};

    fn check(class: Class, addresses: &[&str]) {
        for text in addresses {
            let address = text.parse().expect("an address");
            assert_eq!(classify(address), class, "{text}");
        }
    }

    #[test]
    fn every_address_that_is_not_public_is_known() {
        check(
            Class::Private,
            &[
                "10.0.0.1",
                "172.16.0.1",
                "172.31.255.255",
                "192.168.1.1",
                "fec0::1",
            ],
        );
        check(Class::Loopback, &["127.0.0.1", "127.255.255.254", "::1"]);
        check(Class::LinkLocal, &["169.254.0.1", "fe80::1", "febf::1"]);
        check(
            Class::Metadata,
            &[
                "169.254.169.254",
                "169.254.170.2",
                "100.100.100.200",
                "168.63.129.16",
            ],
        );
        check(
            Class::Metadata,
            &["fd00:ec2::254", "fd20:ce::254", "192.0.0.192"],
        );
        check(Class::CarrierShared, &["100.64.0.1", "100.127.255.255"]);
        check(Class::UniqueLocal, &["fc00::1", "fdff::1"]);
        check(
            Class::Multicast,
            &["224.0.0.1", "239.255.255.255", "ff02::1"],
        );
        check(Class::Unspecified, &["0.0.0.0", "0.1.2.3", "::"]);
        check(Class::Broadcast, &["255.255.255.255"]);
        check(
            Class::Documentation,
            &[
                "192.0.2.1",
                "198.51.100.1",
                "203.0.113.1",
                "2001:db8::1",
                "3fff::1",
            ],
        );
        check(
            Class::Reserved,
            &[
                "192.0.0.1",
                "192.88.99.1",
                "198.18.0.1",
                "198.19.0.1",
                "240.0.0.1",
            ],
        );
        check(
            Class::Reserved,
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
            Class::Loopback,
            &[
                "::ffff:127.0.0.1",
                "::127.0.0.1",
                "64:ff9b::127.0.0.1",
                "2002:7f00:1::",
            ],
        );
        check(
            Class::Metadata,
            &[
                "::ffff:169.254.169.254",
                "64:ff9b::169.254.169.254",
                "2002:a9fe:a9fe::1",
            ],
        );
        check(
            Class::Private,
            &[
                "::ffff:10.0.0.1",
                "::ffff:0:10.0.0.1",
                "2002:c0a8:101::1",
                "::10.0.0.1",
            ],
        );
        check(Class::Public, &["64:ff9b::1.1.1.1", "::ffff:1.1.1.1"]);
        check(Class::Reserved, &["::1.1.1.1", "2002:101:101::1"]);
    }

    #[test]
    fn neighbours_of_private_ranges_are_public() {
        check(
            Class::Public,
            &[
                "1.1.1.1",
                "9.255.255.255",
                "11.0.0.0",
                "172.15.255.255",
                "172.32.0.0",
            ],
        );
        check(
            Class::Public,
            &[
                "100.63.255.255",
                "100.128.0.0",
                "126.255.255.255",
                "128.0.0.0",
            ],
        );
        check(
            Class::Public,
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
        assert!(!Reach::Public.covers(Class::Loopback));
        assert!(Reach::PrivateByName.covers(Class::Loopback));
        assert!(!Reach::PrivateByName.covers(Class::Metadata));
        assert!(Reach::PrivateByAddress.covers(Class::Metadata));
        for class in [
            Class::Unspecified,
            Class::Multicast,
            Class::Broadcast,
            Class::Reserved,
        ] {
            assert!(!Reach::PrivateByAddress.covers(class), "{class}");
        }
    }
}
