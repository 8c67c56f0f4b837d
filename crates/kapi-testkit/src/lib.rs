//! kapi-testkit
