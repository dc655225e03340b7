//! Matches: players over paired games, each opening played from both sides.

use std::collections::HashSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

use super::opening::Openings;
use super::pool::{Finished, PoolError, PoolParams, PoolStats, Table, Tables, play_pool};
use super::seat::Player;
use super::tally::{Desk, MatchReport, MatchTally};
use crate::game::Game;
use crate::util::rng::{Purpose, Stream, mix};
use crate::util::stats::Sprt;

/// How a match is played.
#[derive(Clone, Debug)]
pub struct MatchParams<G: Game> {
    /// Who meets whom: numbers of two different players each.
    pub encounters: Vec<[usize; 2]>,
    /// Pairs of games of each encounter at most; each pair plays one opening with sides swapped, and all encounters play
    /// the same openings.
    pub pairs: usize,
    /// Where the pairs begin.
    pub openings: Openings<G>,
    /// Ends the match as soon as this test of the first encounter has decided.
    pub sprt: Option<Sprt>,
    /// Seeds the players.
    pub seed: u64,
    /// Threads and games at once.
    pub pool: PoolParams,
}

/// Everybody against everybody, for so many players.
pub fn round_robin(players: usize) -> Vec<[usize; 2]> {
    (0..players).flat_map(|a| (a + 1..players).map(move |b| [a, b])).collect()
}

/// The first player against each of the others.
pub fn gauntlet(players: usize) -> Vec<[usize; 2]> {
    (1..players).map(|b| [0, b]).collect()
}

/// What watches over a match.
pub struct Referee<'a> {
    /// Ends the match when it says so; the games in progress are dropped.
    pub stop: &'a (dyn Fn() -> bool + Sync),
    /// Is handed each game as it ends, in no particular order.
    pub finished: &'a (dyn Fn(&Finished) + Sync),
    /// Is told after each game how the encounters stand, complete pairs only.
    pub progress: &'a (dyn Fn(&[MatchTally]) + Sync),
}

struct Pairs<'a, G: Game> {
    game: &'a G,
    players: &'a [Player<G>],
    params: &'a MatchParams<G>,
    openings: Mutex<Openings<G>>,
    played: HashSet<u64>,
    next: AtomicUsize,
}

impl<G: Game> Pairs<'_, G> {
    /// Feeds the random decisions of the game `index`. It belongs to who moves first and who second, so that the
    /// same two players play the same games whatever the order they are named in and whoever else takes part.
    fn random(&self, pair: usize, seats: [usize; 2]) -> Stream {
        let [first, second] = seats.map(|player| key(&self.players[player].identity));
        // The games of a player against itself would else be twice the same.
        let twin = u64::from(first == second && seats[0] > seats[1]);
        Stream::keyed(self.params.seed, Purpose::Match, &[pair as u64, first, second, twin])
    }
}

/// A number for an identity, always the same one.
fn key(identity: &str) -> u64 {
    identity.bytes().fold(0, |key, byte| mix(key ^ (u64::from(byte) + 1)))
}

impl<G: Game> Tables<G> for Pairs<'_, G> {
    fn next(&self) -> Option<Table<G>> {
        let encounters = &self.params.encounters;
        let index = loop {
            let index = self.next.fetch_add(1, Relaxed);
            if index / 2 >= self.params.pairs * encounters.len() {
                return None;
            }
            if !self.played.contains(&(index as u64)) {
                break index;
            }
        };
        let (pair, [a, b]) = (index / 2 / encounters.len(), encounters[index / 2 % encounters.len()]);
        let mut openings = self.openings.lock().expect("drawing an opening does not panic");
        let opening = openings.get(self.game, pair).clone();
        drop(openings);
        let seats = if index.is_multiple_of(2) { [a, b] } else { [b, a] };
        let random = self.random(pair, seats);
        Some(Table { index: index as u64, seats, start: opening.start, opening: opening.moves, script: None, random })
    }
}

/// Plays a match of `players`. Games `played` earlier, in a match of the same players, parameters and seed, are not played again.
///
/// The result depends on the seed alone, not on threads: pairs are counted in order, and with a sequential test those
/// after the decision do not count. (Players whose moves take a fixed time are another matter.)
///
/// # Errors
/// When an evaluator fails.
pub fn play_match<G: Game>(
    game: &G,
    players: &[Player<G>],
    params: &MatchParams<G>,
    played: Vec<Finished>,
    stats: &PoolStats,
    referee: &Referee<'_>,
) -> Result<MatchReport, PoolError> {
    let tables = Pairs {
        game,
        players,
        params,
        openings: Mutex::new(params.openings.clone()),
        played: played.iter().map(|game| game.index).collect(),
        next: AtomicUsize::new(0),
    };
    let mut desk = Desk::new(players.len(), params.encounters.clone(), params.sprt);
    let mut over = false;
    for game in played {
        over = over || desk.take(game);
    }
    let (decided, desk) = (AtomicBool::new(over), Mutex::new(desk));
    let stop = || decided.load(Relaxed) || (referee.stop)();
    play_pool(game, players, &tables, params.pool, &stop, stats, &|finished| {
        (referee.finished)(&finished);
        let mut desk = desk.lock().expect("no thread panics while it holds the desk");
        if !decided.load(Relaxed) && desk.take(finished) {
            decided.store(true, Relaxed);
        }
        (referee.progress)(desk.tallies());
    })?;
    let desk = desk.into_inner().expect("all threads have ended");
    let complete = decided.load(Relaxed) || desk.games() == 2 * (params.pairs * params.encounters.len()) as u64;
    Ok(desk.report(!complete))
}
