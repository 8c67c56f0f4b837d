//! The binary `kapi`.
fn main() {}
