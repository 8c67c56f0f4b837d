//! The gateway as a sandbox meets it: real sockets on loopback, hostile clients, local servers.

#[cfg(test)]
mod ask;
#[cfg(test)]
mod ask_errors;
#[cfg(test)]
mod ask_rig;
#[cfg(test)]
mod egress_connect;
#[cfg(test)]
mod egress_forward;
#[cfg(test)]
mod egress_hello;
#[cfg(test)]
mod egress_host_proxy;
#[cfg(test)]
mod egress_http;
#[cfg(test)]
mod egress_limits;
#[cfg(test)]
mod egress_socks;
#[cfg(test)]
mod model;
#[cfg(test)]
mod model_budget;
#[cfg(test)]
mod model_cassette;
#[cfg(test)]
mod model_dialects;
#[cfg(test)]
mod model_hangup;
#[cfg(test)]
mod model_real;
#[cfg(test)]
mod model_rig;
#[cfg(test)]
mod model_rules;
#[cfg(test)]
mod model_tls;
#[cfg(test)]
mod model_trouble;
#[cfg(test)]
#[path = "../../../kapi-sys/tests/it/room.rs"]
mod room;
#[cfg(test)]
mod support;
