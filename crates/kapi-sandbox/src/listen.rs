//! Listening on loopback addresses, in whichever network the calling process is in.
//!
//! Used inside a sandbox's network and on the host's alike, so that both refuse the same addresses.

use std::net::{SocketAddr, TcpListener};

use rustix::io::Errno;

use crate::status::{CARRIED_MAX, StepFailure};

/// Listens at each address, in order.
pub(crate) fn listen_at(addresses: &[SocketAddr]) -> Result<Vec<TcpListener>, StepFailure> {
    if addresses.len() > CARRIED_MAX {
        let target = format!("{} listeners, at most {CARRIED_MAX}", addresses.len());
        return Err(StepFailure::new("bind", &target, Errno::TOOBIG));
    }
    addresses.iter().map(listen).collect()
}

fn listen(address: &SocketAddr) -> Result<TcpListener, StepFailure> {
    if !address.ip().is_loopback() {
        let target = format!("{address}, which is not a loopback address");
        return Err(StepFailure::new("bind", &target, Errno::ADDRNOTAVAIL));
    }
    TcpListener::bind(address).map_err(|error| {
        let errno = Errno::from_io_error(&error).unwrap_or(Errno::IO);
        StepFailure::new("bind", &address.to_string(), errno)
    })
}
