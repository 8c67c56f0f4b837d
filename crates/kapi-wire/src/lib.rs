//! kapi-wire
