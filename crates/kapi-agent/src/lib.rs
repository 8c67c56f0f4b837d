//! kapi-agent
