//! What a run has cost so far, by the gateway's reckoning and by the agent's own word.
//!
//! Each millionth is reported once. The price list goes before the agent's word, unless there was a
//! model whose price it does not know.

/// The two sums, and what was reported of them.
#[derive(Debug, Default)]
pub(super) struct Cost {
    /// What the price list makes of the calls whose price it knows.
    priced: u64,
    n_priced: u64,
    n_unpriced: u64,
    /// What the agent says that everything cost.
    reported: u64,
    notified: u64,
}

impl Cost {
    /// Takes the price of a use, if it has one; returns what is to be reported now.
    pub(super) fn priced(&mut self, usd_micros: Option<u64>) -> Option<u64> {
        match usd_micros {
            Some(micros) => {
                self.n_priced += 1;
                self.priced = self.priced.saturating_add(micros);
                Some(self.owed())
            }
            None => {
                self.n_unpriced += 1;
                self.owed_if_any()
            }
        }
    }

    /// Takes what the agent says beyond what it said before; returns what is to be reported now.
    pub(super) fn reported(&mut self, usd_micros: u64) -> Option<u64> {
        self.reported = self.reported.saturating_add(usd_micros);
        let is_priced = self.n_unpriced == 0 && self.n_priced > 0;
        if is_priced {
            self.owed_if_any()
        } else {
            Some(self.owed())
        }
    }

    fn owed_if_any(&mut self) -> Option<u64> {
        Some(self.owed()).filter(|owed| *owed > 0)
    }

    fn owed(&mut self) -> u64 {
        let is_priced = self.n_unpriced == 0 && self.n_priced > 0;
        let total = if is_priced {
            self.priced
        } else {
            self.priced.max(self.reported)
        };
        let owed = total.saturating_sub(self.notified);
        self.notified = self.notified.saturating_add(owed);
        owed
    }
}

#[cfg(test)]
mod tests {
    use super::Cost;

    #[test]
    fn a_priced_run_costs_what_the_price_list_says() {
        let mut cost = Cost::default();
        assert_eq!(cost.priced(Some(10)), Some(10));
        assert_eq!(cost.priced(Some(0)), Some(0));
        assert_eq!(
            cost.reported(500),
            None,
            "the agent's own list is not asked"
        );
        assert_eq!(cost.priced(Some(5)), Some(5));
    }

    #[test]
    fn without_prices_the_agent_is_believed() {
        let mut cost = Cost::default();
        assert_eq!(cost.priced(None), None, "nobody knows yet");
        assert_eq!(cost.reported(30), Some(30));
        assert_eq!(cost.priced(None), None);
        assert_eq!(cost.reported(0), Some(0));
        assert_eq!(cost.reported(5), Some(5));
    }

    #[test]
    fn where_one_price_is_missing_the_larger_sum_counts_once() {
        let mut cost = Cost::default();
        assert_eq!(cost.priced(Some(10)), Some(10));
        assert_eq!(cost.priced(None), None);
        assert_eq!(cost.reported(25), Some(15), "10 were told");
        assert_eq!(cost.priced(Some(10)), Some(0), "20 are within the 25");
    }
}
