//! kapi-sandbox
