//! How much of a clock goes into a move.

use std::time::Duration;

use super::Clock;

/// What goes off the clock with each move besides thinking: messages between processes, the operating system.
const OVERHEAD: Duration = Duration::from_millis(10);

/// What is never planned with: a machine that is busy may let a process wait.
const RESERVE: Duration = Duration::from_millis(50);

/// Moves of its own that an engine prepares for, where the rules allow as many.
const MOVES_AHEAD: u32 = 30;

/// The least that a search gets.
const LEAST: Duration = Duration::from_millis(1);

/// The time to spend on a move of player `mover` (0 or 1) in a game that ends within `plies_left` single moves; `None` where
/// that player's clock is not told.
///
/// The time is shared evenly among the moves that may still come, at most 30, after the overhead of these and
/// a reserve are set aside; three quarters of the increment are spent at once. Never more than half of the time left.
pub(super) fn share(clock: &Clock, mover: usize, plies_left: usize) -> Option<Duration> {
    let left = clock.left[mover]?;
    // Of the moves left no more than half are this player's, also where one moves twice in a turn.
    let bound = u32::try_from(plies_left / 2 + 1).unwrap_or(u32::MAX);
    let moves = bound.min(MOVES_AHEAD);
    let aside = (OVERHEAD * moves + RESERVE).min(left * 9 / 10);
    let even = (left - aside) / moves + clock.increment[mover] * 3 / 4;
    Some(even.min(left / 2).max(LEAST))
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    /// What is left at the end of the longest game; `None` when the time runs out before.
    fn play(start: Duration, increment: Duration, most_plies: usize, overhead: Duration) -> Option<Duration> {
        let mut left = start;
        for ply in (0..most_plies).step_by(2) {
            let clock = Clock { left: [Some(left), None], increment: [increment; 2] };
            let spent = share(&clock, 0, most_plies - ply)?;
            left = left.checked_sub(spent + overhead).filter(|left| !left.is_zero())? + increment;
        }
        Some(left)
    }

    #[test]
    fn no_game_runs_out_of_time() {
        // (longest game, what each move costs besides)
        for (most_plies, overhead) in [(9, 10), (42, 10), (81, 10), (96, 10), (200, 5), (10_000, 0)] {
            for start in [ms(1000), ms(10_000), ms(60_000), ms(3_600_000)] {
                for increment in [ms(0), ms(20), ms(1000)] {
                    if most_plies == 10_000 && increment.is_zero() {
                        // Thousands of moves take a millisecond each at the least.
                        continue;
                    }
                    let left = play(start, increment, most_plies, ms(overhead));
                    assert!(left.is_some(), "{most_plies} plies, {start:?} + {increment:?}");
                }
            }
        }
    }

    #[test]
    fn most_of_the_time_is_used() {
        for (start, plies) in [(ms(1000), 81), (ms(60_000), 81), (ms(60_000), 42), (ms(60_000), 200)] {
            let left = play(start, ms(0), plies, ms(0)).unwrap();
            assert!(left * 2 < start, "{left:?} of {start:?} is left after {plies} plies");
        }
    }

    #[test]
    fn a_move_gets_its_share() {
        let clock =
            |left: u64, increment: u64| Clock { left: [None, Some(ms(left))], increment: [ms(0), ms(increment)] };
        assert_eq!(share(&clock(60_050, 0), 1, 1000), Some(ms(1990)));
        assert_eq!(share(&clock(60_050, 1000), 1, 1000), Some(ms(2740)));
        // Near the end of a game with an end, the rest is shared by fewer.
        assert_eq!(share(&clock(60_000, 0), 1, 3), Some(ms(29_965)));
        // Not all of a clock that is almost out, whatever the increment; and never nothing.
        assert_eq!(share(&clock(10, 1000), 1, 1000), Some(ms(5)));
        assert_eq!(share(&clock(0, 0), 1, 1000), Some(LEAST));
        assert_eq!(share(&clock(0, 0), 0, 1000), None);
    }
}
