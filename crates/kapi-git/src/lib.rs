//! kapi-git
