//! kapi-core
