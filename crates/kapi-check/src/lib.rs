pub mod perform;
pub mod rules;
