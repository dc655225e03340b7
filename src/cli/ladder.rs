//! `sparring ladder`.

use std::path::PathBuf;

use super::live::LiveLater;
use super::pit::parse_games;
use super::threads::Threads;
use super::{Failure, Outcome, print, usage_of};
use crate::arena::{Climb, Ladder, LadderError, LadderFiles, LadderParams, RatedError, signed};
use crate::game::Game;
use crate::games::{self, GameVisitor};
use crate::run::dir::RunDir;
use crate::run::stop::{Signals, StopFlag};

/// Rate a run's checkpoints over time against players that never change
///
/// The checkpoints play against each anchor and against their neighbours, and all are rated together. The curve goes to the run's
/// TensorBoard (ladder/elo), to RUN/ladder/ladder.svg and, as numbers, to RUN/ladder/ladder.json. Interrupted, the
/// same command goes on.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring ladder runs/uttt\n  \
    sparring ladder runs/uttt --checkpoints 20 --games 100 --sims 400\n  \
    sparring ladder runs/tictactoe --anchors random,mcts:100 --json")]
pub struct LadderVerb {
    /// The folder of a run
    run: PathBuf,
    /// Checkpoints to rate at most, spread over the run
    #[arg(long, default_value_t = 10, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1000))]
    checkpoints: u64,
    /// Games of each two that meet, an even number
    #[arg(long, default_value = "40", value_name = "N", value_parser = parse_games)]
    games: usize,
    /// Simulations of the checkpoints
    #[arg(long, default_value_t = 100, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=100_000_000))]
    sims: u32,
    /// The players that they are rated against [default: random, mcts:100, mcts:1000, mcts:10000, and in tictactoe solver]
    #[arg(long, value_delimiter = ',', value_name = "PLAYER,...")]
    anchors: Vec<String>,
    /// The anchor at Elo 0 [default: mcts:1000 if it is among them, else the last one]
    #[arg(long, value_name = "PLAYER")]
    zero: Option<String>,
    /// Seed of openings and players
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    #[command(flatten)]
    threads: Threads,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
}

impl LadderVerb {
    pub(super) fn run(self) -> Outcome {
        let stop = StopFlag::new();
        let _signals = Signals::listen(&stop)?;
        let params = LadderParams {
            checkpoints: self.checkpoints as usize,
            anchors: self.anchors.clone(),
            zero: self.zero.clone(),
            games: self.games,
            simulations: self.sims,
            seed: self.seed,
            threads: self.threads.count(),
        };
        let climb = Climb::new(&self.run, params).map_err(failure)?;
        let name = climb.game.clone();
        games::dispatch(&name, Rate { verb: &self, climb, stop }).map_err(|error| Failure::Failed(error.to_string()))?
    }
}

fn failure(error: LadderError) -> Failure {
    match error {
        LadderError::Rated(RatedError::Player(error)) => usage_of(error),
        LadderError::NoCheckpoints { .. } | LadderError::NoZero { .. } => Failure::Usage(error.to_string()),
        _ => Failure::Failed(error.to_string()),
    }
}

struct Rate<'a> {
    verb: &'a LadderVerb,
    climb: Climb,
    stop: StopFlag,
}

impl GameVisitor for Rate<'_> {
    type Output = Outcome;

    fn visit<G: Game>(self, game: G) -> Outcome {
        let live = LiveLater::default();
        let (begin, progress) = (|ahead| live.rating(ahead), |tallies: &[_]| live.tell(tallies));
        let ladder = self.climb.play(&game, &|| self.stop.is_set(), &begin, &progress).map_err(failure)?;
        live.end();
        let Some(ladder) = ladder else { return Err(Failure::Interrupted) };
        if self.verb.json {
            let text = serde_json::to_string_pretty(&ladder).map_err(|error| Failure::Failed(error.to_string()))?;
            return print(&format!("{text}\n"));
        }
        print(&table(&ladder, &LadderFiles::of(&RunDir::new(&self.verb.run))))
    }
}

fn table(ladder: &Ladder, files: &LadderFiles) -> String {
    let mut lines: Vec<String> = Vec::new();
    let mut line = |text: String| lines.push(format!("{}\n", text.trim_end()));
    let widths: Vec<usize> = ladder.anchors.iter().map(|anchor| anchor.chars().count().max(7)).collect();
    let columns = |texts: Vec<String>| -> String {
        texts.iter().zip(&widths).map(|(text, &width)| format!("  {text:>width$}")).collect()
    };
    line(format!("{}: {} simulations, {} games of each two", ladder.game, ladder.simulations, ladder.games));
    line(format!("generation     step     Elo            95 %{}", columns(ladder.anchors.clone())));
    for rung in &ladder.rungs {
        let score = |score: &Option<f64>| score.map_or_else(String::new, |score| format!("{:.1} %", 100.0 * score));
        line(format!(
            "{:>10}  {:>7}  {:>6}  {:>14}{}",
            rung.generation,
            rung.step,
            signed(rung.elo.value),
            format!("{} to {}", signed(rung.elo.low), signed(rung.elo.high)),
            columns(rung.scores.iter().map(score).collect())
        ));
    }
    let elo = ladder.anchor_elo.iter().map(|elo| signed(elo.value)).collect();
    line(format!("{:<43}{}", "Elo of the anchors", columns(elo)));
    line(format!("picture: {}", files.picture.display()));
    lines.concat()
}
