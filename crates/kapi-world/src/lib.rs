//! kapi-world
