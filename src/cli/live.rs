//! How a match stands, on stderr.

use std::io::{IsTerminal as _, Write as _};
use std::sync::{Mutex, OnceLock};
use std::time::{Duration, Instant};

use crate::arena::Ahead;
use crate::play::MatchTally;
use crate::util::stats::{GameCounts, Tally as _};

/// Tells stderr now and then how a match stands.
pub(super) struct Live {
    games: usize,
    /// Whether somebody watches, and sees one line change.
    watched: bool,
    told: Mutex<Instant>,
}

impl Live {
    /// A match of so many `games`, of which some were `played` earlier.
    pub(super) fn new(games: usize, played: usize) -> Self {
        if played > 0 {
            tell(format!("goes on after {played} of {games} games\n"));
        }
        Self { games, watched: std::io::stderr().is_terminal(), told: Mutex::new(Instant::now()) }
    }

    pub(super) fn tell(&self, tallies: &[MatchTally]) {
        let mut told = self.told.lock().expect("nothing panics here");
        let every = Duration::from_secs(if self.watched { 1 } else { 15 });
        if told.elapsed() >= every {
            *told = Instant::now();
            let games = tallies.iter().fold(GameCounts::default(), |sum, tally| sum + tally.games());
            let result = if tallies.len() == 1 { format!(": {games}") } else { String::new() };
            let line = format!("{} of {} games{result}", games.total(), self.games);
            tell(if self.watched { format!("\r{line}  ") } else { format!("{line}\n") });
        }
    }

    pub(super) fn end(&self) {
        if self.watched {
            tell(format!("\r{:60}\r", ""));
        }
    }
}

/// A [`Live`] whose match is not known yet.
#[derive(Default)]
pub(super) struct LiveLater(OnceLock<Live>);

impl LiveLater {
    /// The match begins; as [`Live::new`].
    pub(super) fn begin(&self, games: usize, played: usize) {
        self.0.get_or_init(|| Live::new(games, played));
    }

    /// Games that rate players begin.
    pub(super) fn rating(&self, ahead: Ahead) {
        if let Some(anew) = ahead.anew {
            anstream::eprintln!("warning: {anew}");
        }
        self.begin(ahead.games, ahead.played);
    }

    pub(super) fn tell(&self, tallies: &[MatchTally]) {
        if let Some(live) = self.0.get() {
            live.tell(tallies);
        }
    }

    pub(super) fn end(&self) {
        if let Some(live) = self.0.get() {
            live.end();
        }
    }
}

/// Writes to stderr; that nobody listens any more is no reason to end a match.
fn tell(text: String) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}
