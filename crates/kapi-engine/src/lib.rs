//! kapi-engine
