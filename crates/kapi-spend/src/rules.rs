//! Money: what a model costs, where it was spent, and who may spend more.
//!
//! Amounts are whole millionths of a US dollar, days are UTC. [`caps`] says how much may be spent,
//! [`decide`] whether the next turn may, [`totals`] is the fold of what was. Knows no clock and no
//! file; whose reservation lost its process is told to it.

pub mod account;
pub mod call;
pub mod caps;
pub mod day;
pub mod decide;
pub mod event;
pub mod price;
pub mod price_table;
pub mod prices;
pub mod report;
pub mod tokens;
pub mod totals;

#[cfg(test)]
mod tests;
