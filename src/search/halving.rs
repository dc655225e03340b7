//! Sequential halving at the root of a Gumbel search (Karnin et al. 2013; Danihelka et al. 2022, algorithm 2).

/// Who is due at each simulation: in a *round* every move in play has one turn, in a *phase* as many rounds as its
/// share of the budget allows, and from phase to phase half of the moves stay in play, two to the end.
///
/// A walk instead of a list of all turns, so that its size does not depend on the budget. A move is due when its
/// visits of this search are [`round`](Halving::round): those that dropped out have fewer, those that
/// had their turn one more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Halving {
    simulations: u32,
    phases: u32,
    in_play: u32,
    round: u32,
    turns_left: u32,
    rounds_left: u32,
}

impl Halving {
    /// The walk for `simulations` turns that begins with `considered` moves (at least one).
    pub fn new(considered: u32, simulations: u32) -> Self {
        let considered = considered.max(1);
        // The logarithm to base two, rounded up; one move alone has one phase.
        let phases = (u32::BITS - (considered - 1).leading_zeros()).max(1);
        let mut walk =
            Self { simulations, phases, in_play: considered, round: 0, turns_left: considered, rounds_left: 0 };
        walk.rounds_left = walk.rounds_of_phase();
        walk
    }

    fn rounds_of_phase(&self) -> u32 {
        let turns = u64::from(self.phases) * u64::from(self.in_play);
        ((u64::from(self.simulations) / turns) as u32).max(1)
    }

    /// The simulations that the phases were laid out for.
    pub fn simulations(&self) -> u32 {
        self.simulations
    }

    /// Visits that a move has had in this search when its turn comes.
    pub fn round(&self) -> u32 {
        self.round
    }

    /// One move had its turn.
    pub fn take_turn(&mut self) {
        self.turns_left -= 1;
        if self.turns_left == 0 {
            self.end_round();
        }
    }

    /// Ends a round, before its time when no move is due any more (the others were proven lost).
    pub fn end_round(&mut self) {
        self.round += 1;
        self.rounds_left -= 1;
        if self.rounds_left == 0 {
            self.in_play = (self.in_play / 2).max(self.in_play.min(2));
            self.rounds_left = self.rounds_of_phase();
        }
        self.turns_left = self.in_play;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(considered: u32, simulations: u32) -> Vec<u32> {
        let mut walk = Halving::new(considered, simulations);
        (0..simulations)
            .map(|_| {
                let round = walk.round();
                walk.take_turn();
                round
            })
            .collect()
    }

    #[test]
    fn schedules_by_hand() {
        assert_eq!(rounds(1, 4), [0, 1, 2, 3]);
        // Two moves, four simulations: one phase of two visits each.
        assert_eq!(rounds(2, 4), [0, 0, 1, 1]);
        // Four moves, eight simulations: one visit each, then the two best get two more each.
        assert_eq!(rounds(4, 8), [0, 0, 0, 0, 1, 1, 2, 2]);
        // Sixteen simulations of four moves: two visits each, then four more for two of them.
        assert_eq!(rounds(4, 16), [0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
        // Five moves have three phases: five, two, two in play; 24 / (3 * 5) = 1 and 24 / (3 * 2) = 4 rounds.
        assert_eq!(rounds(5, 24)[..15], [0, 0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5]);
        // Fewer simulations than moves: as many as there are.
        assert_eq!(rounds(16, 3), [0, 0, 0]);
        assert_eq!(rounds(5, 0), [0u32; 0]);
    }

    #[test]
    fn the_largest_budget_takes_no_more_room() {
        let mut walk = Halving::new(16, u32::MAX);
        (0..1000).for_each(|_| walk.take_turn());
        assert_eq!(walk.round(), 62);
    }

    #[test]
    fn a_round_can_end_early() {
        let mut walk = Halving::new(4, 16);
        walk.take_turn();
        walk.end_round();
        assert_eq!(walk.round(), 1);
        (0..4).for_each(|_| walk.take_turn());
        assert_eq!((walk.round(), walk.in_play), (2, 2));
    }
}
