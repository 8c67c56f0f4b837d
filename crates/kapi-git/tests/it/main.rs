//! Tests of kapi-git against a real git, each one an attempt to lose data or to run a program.

#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "the whole binary is a test; clippy sees only the functions marked as one"
)]

mod advance;
mod apply;
mod apply_layer;
mod apply_site;
mod attacks;
mod attacks_files;
mod candidate;
mod checkout;
mod clashes;
mod coverage;
mod coverage_random;
mod crash;
mod dirt;
mod fixture;
mod frozen;
mod hidden;
mod hostile;
mod hunks;
mod in_place;
mod land;
mod land_range;
mod land_reapply;
mod layer;
mod layer_fixture;
mod layer_random;
mod layer_walk;
mod links;
mod own_commits;
mod owned_dir;
mod patches;
mod place;
mod private_view;
mod protected;
mod publish;
mod push;
mod reachable;
mod refs;
mod repository;
mod rescue;
mod resolutions;
mod restore;
mod source;
mod split;
mod trap;
mod untouched;
mod workspace;
