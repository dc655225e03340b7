//! `sparring accuracy`.

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;

use super::threads::Threads;
use super::{Failure, Outcome, game_of, print, usage_of};
use crate::game::{Game, full_name};
use crate::games::{self, GameVisitor};
use crate::net::EngineChoice;
use crate::run::accuracy::{AccuracyParams, AccuracyReport, Tally, measure};
use crate::run::player::PlayerSpec;
use crate::run::stop::{Signals, StopFlag};

/// Measure a player against perfect play, in games that have a solver: the share of its moves that keep the result, and how
/// far its values are off, by plies
///
/// Tic-tac-toe is measured in every position. Connect four is measured in positions of random games, from 12 discs on.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring accuracy runs/tictactoe@policy\n  \
    sparring accuracy runs/connect4 --sims 400 --positions 3000\n  \
    sparring accuracy mcts:1000 --game connect4 --json")]
pub struct Accuracy {
    /// The player (as in `sparring pit`)
    player: String,
    /// Simulations of a network for each position, as @sims=N behind it [default: 100]
    #[arg(long, value_name = "N")]
    sims: Option<u32>,
    /// The game, where the player's network does not imply it
    #[arg(long, value_name = "GAME")]
    game: Option<String>,
    /// Positions, spread evenly over the plies [default: all of a small game, else 1000]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    positions: Option<u32>,
    /// Seed of the positions and of the player
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    #[command(flatten)]
    threads: Threads,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
}

impl Accuracy {
    pub(super) fn run(self) -> Outcome {
        let usage = |message: &str| Failure::Usage(message.to_owned());
        let stop = StopFlag::new();
        let _signals = Signals::listen(&stop)?;
        let text = match self.sims {
            Some(_) if self.player.starts_with("engine:") => {
                return Err(usage(
                    "--sims is for networks; an engine takes @nodes=N or @movetime=MS behind its command",
                ));
            }
            Some(sims) => format!("{}@sims={sims}", self.player),
            None => self.player.clone(),
        };
        let spec = PlayerSpec::parse(&text).map_err(|error| Failure::Usage(error.to_string()))?;
        let name = game_of(&spec, self.game.as_ref())?;
        games::dispatch(&name, Task { accuracy: self, spec, stop }).map_err(|e| Failure::Usage(e.to_string()))?
    }
}

struct Task {
    accuracy: Accuracy,
    spec: PlayerSpec,
    stop: StopFlag,
}

impl GameVisitor for Task {
    type Output = Outcome;

    fn visit<G: Game>(self, game: G) -> Outcome {
        let player = self.spec.open(&game, &EngineChoice::default()).map_err(usage_of)?;
        let params = AccuracyParams {
            positions: self.accuracy.positions.map(|positions| positions as usize),
            seed: self.accuracy.seed,
            threads: self.accuracy.threads.count(),
        };
        let live = std::io::stderr().is_terminal();
        let told = Mutex::new(Instant::now());
        let report = measure(&game, &player, &params, &|| self.stop.is_set(), &|done, all| {
            let mut told = told.lock().expect("nothing panics here");
            if told.elapsed() >= Duration::from_secs(if live { 1 } else { 15 }) {
                *told = Instant::now();
                let line = format!("{done} of {all} positions");
                // That nobody listens any more is no reason to stop.
                let _ = write!(std::io::stderr(), "{}", if live { format!("\r{line}  ") } else { format!("{line}\n") });
            }
        })
        .map_err(|error| Failure::of(&error, error.is_usage()))?;
        if live {
            let _ = write!(std::io::stderr(), "\r{:40}\r", "");
        }
        let name = full_name(&game);
        let text = if self.accuracy.json {
            let document = json!({
                "game": name,
                "player": self.spec.text,
                "seed": params.seed,
                "total": report.total,
                "by_plies": report.by_plies,
                "left_out": report.left_out,
                "interrupted": report.interrupted,
            });
            format!("{document:#}\n")
        } else {
            table(&name, &self.spec.text, &report)
        };
        print(&text)?;
        if report.interrupted { Err(Failure::Interrupted) } else { Ok(()) }
    }
}

fn table(game: &str, player: &str, report: &AccuracyReport) -> String {
    let mut out = format!("{game}: {player} against perfect play\n");
    let mut line = |text: String| writeln!(out, "  {text}").expect("writing to a string");
    if report.interrupted {
        line("interrupted; the positions judged so far:".to_owned());
    }
    line("plies  positions  optimal  choices  optimal there  value error".to_owned());
    let percent = |share: Option<f64>| share.map_or("-".to_owned(), |share| format!("{:.1} %", 100.0 * share));
    let mut row = |plies: String, tally: &Tally| {
        let Tally { positions, choices, .. } = tally;
        let (optimal, there) = (percent(tally.optimal_share()), percent(tally.optimal_choice_share()));
        let error = tally.value_error().map_or("-".to_owned(), |error| format!("{error:.3}"));
        line(format!("{plies:>5}  {positions:>9}  {optimal:>7}  {choices:>7}  {there:>13}  {error:>11}"));
    };
    report.by_plies.iter().for_each(|by| row(by.plies.to_string(), &by.tally));
    row("all".to_owned(), &report.total);
    let Tally { wins_drawn, wins_lost, draws_lost, .. } = report.total;
    line(format!("mistakes: {wins_drawn} wins drawn, {wins_lost} wins lost, {draws_lost} draws lost"));
    if report.left_out > 0 {
        line(format!("left out: {} positions that the solver did not solve within its limit", report.left_out));
    }
    out
}
