//! `sparring pit`.

use std::io::{IsTerminal as _, Write as _};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use serde_json::json;

use super::{Failure, Outcome, print, usage_of};
use crate::data::PlyKind;
use crate::game::{Game, full_name};
use crate::games::{self, GameVisitor};
use crate::net::EngineChoice;
use crate::play::{Finished, MatchParams, MatchReport, PoolParams, PoolStats, play_match};
use crate::run::config::opening_plies;
use crate::run::player::PlayerSpec;
use crate::run::stop::{Signals, StopFlag};
use crate::util::machine::cores;
use crate::util::stats::{Estimate, Sprt, Tally as _, Verdict};

/// Let two players play a match: paired games, each opening from both sides
///
/// A PLAYER is a checkpoint file or the folder of a run, with any of these behind it: @sims=N, @policy (the network alone),
/// @temperature=T, @view=averaged (each position judged through all symmetries), and keys of a config's section `search`
/// such as @algorithm=puct or @fpu_reduction=0.2; `random`; `solver` (perfect play, in tictactoe and connect4); `mcts:SIMULATIONS` (UCB1 with random rollouts, @c=1.0);
/// or `engine:COMMAND` (another program that speaks UGI, with @movetime=MS or @nodes=N).
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring pit runs/uttt@sims=100 mcts:1000 --games 200\n  \
    sparring pit models/uttt.safetensors@policy random --json\n  \
    sparring pit mcts:1000 mcts:1000@c=0.5 --game zener --sprt 0,20")]
pub struct Pit {
    /// The first player
    a: String,
    /// The second player
    b: String,
    /// The game, where no player's network implies it
    #[arg(long, value_name = "GAME")]
    game: Option<String>,
    /// Games to play at most, an even number [default: 100, with --sprt 10000]
    #[arg(long, value_name = "N", value_parser = parse_games)]
    games: Option<usize>,
    /// Random plies at the beginning of each pair of games [default: 1 in tictactoe, 2 in connect4, 4 in the others]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    opening_plies: Option<u32>,
    /// Stop as soon as a sequential test between these Elo differences has decided
    #[arg(long, value_name = "ELO0,ELO1", allow_hyphen_values = true)]
    sprt: Option<String>,
    /// Seed of openings and players; the same seed gives the same report
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Worker threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Option<u32>,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
}

impl Pit {
    fn games(&self) -> usize {
        self.games.unwrap_or(if self.sprt.is_some() { 10_000 } else { 100 })
    }

    pub(super) fn run(self) -> Outcome {
        let usage = |message: &str| Failure::Usage(message.to_owned());
        let stop = StopFlag::new();
        let _signals = Signals::listen(&stop)?;
        let sprt = self.sprt.as_deref().map(parse_sprt).transpose().map_err(Failure::Usage)?;
        let specs = [&self.a, &self.b].map(|text| PlayerSpec::parse(text).map_err(|e| Failure::Usage(e.to_string())));
        let [a, b] = specs;
        let specs = [a?, b?];
        let mut names = self.game.clone().into_iter().collect::<Vec<_>>();
        for spec in &specs {
            names.extend(spec.checkpoint().map_err(usage_of)?.map(|checkpoint| checkpoint.info.game));
        }
        let name = names.first().cloned().ok_or_else(|| usage("name the game with --game: no player implies it"))?;
        games::dispatch(&name, Match { pit: &self, specs, sprt, stop }).map_err(|e| Failure::Usage(e.to_string()))?
    }
}

fn parse_games(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(games) if (2..=1_000_000).contains(&games) && games % 2 == 0 => Ok(games),
        _ => Err("expected an even number from 2 to 1000000: every opening is played from both sides".to_owned()),
    }
}

fn parse_sprt(text: &str) -> Result<Sprt, String> {
    let wrong = || format!("--sprt {text:?}: expected two Elo differences such as 0,20");
    let (low, high) = text.split_once(',').ok_or_else(wrong)?;
    let sprt = Sprt::new(low.trim().parse().map_err(|_| wrong())?, high.trim().parse().map_err(|_| wrong())?);
    sprt.check().map_err(|error| format!("--sprt: {error}"))?;
    Ok(sprt)
}

struct Match<'a> {
    pit: &'a Pit,
    specs: [PlayerSpec; 2],
    sprt: Option<Sprt>,
    stop: StopFlag,
}

impl GameVisitor for Match<'_> {
    type Output = Outcome;

    fn visit<G: Game>(self, game: G) -> Outcome {
        let engine = EngineChoice::default();
        let [a, b] = &self.specs;
        let players = [a.open(&game, &engine).map_err(usage_of)?, b.open(&game, &engine).map_err(usage_of)?];
        let threads = self.pit.threads.map_or_else(cores, |threads| threads as usize).min(self.pit.games());
        let pool = PoolParams { threads, slots: (self.pit.games() / threads).clamp(1, 64) };
        let params = MatchParams {
            pairs: self.pit.games() / 2,
            opening_plies: self.pit.opening_plies.unwrap_or_else(|| opening_plies(&game)) as usize,
            sprt: self.sprt,
            seed: self.pit.seed,
            pool,
        };
        let live = std::io::stderr().is_terminal();
        let told = Mutex::new(Instant::now());
        let began = Instant::now();
        let stats = PoolStats::default();
        let report = play_match(&game, &players, &params, &|| self.stop.is_set(), &stats, &|tally| {
            let mut told = told.lock().expect("nothing panics here");
            let every = Duration::from_secs(if live { 1 } else { 15 });
            if told.elapsed() >= every {
                *told = Instant::now();
                let games = tally.games();
                let line = format!("{} of {} games: {}", games.total(), self.pit.games(), wdl(&games));
                tell(if live { format!("\r{line}  ") } else { format!("{line}\n") });
            }
        })?;
        if live {
            tell(format!("\r{:60}\r", ""));
        }
        let seconds = began.elapsed().as_secs_f64();
        let text = if self.pit.json {
            format!("{:#}\n", json_report(&game, &self, &report, seconds))
        } else {
            text_report(&game, &self, &report, seconds)
        };
        print(&text)?;
        if report.interrupted { Err(Failure::Interrupted) } else { Ok(()) }
    }
}

/// Writes to stderr; that nobody listens any more is no reason to end a match.
fn tell(text: String) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

fn wdl(games: &crate::util::stats::GameCounts) -> String {
    format!("{}-{}-{}", games.wins, games.draws, games.losses)
}

fn mean_plies(report: &MatchReport) -> f64 {
    let plies: usize = report.games.iter().map(|game| game.record.plies.len()).sum();
    plies as f64 / report.games.len().max(1) as f64
}

/// Plies of a game that the players decided on.
fn mean_own_plies(report: &MatchReport) -> f64 {
    let own = |game: &Finished| game.record.plies.iter().filter(|ply| ply.kind != PlyKind::Opening).count();
    report.games.iter().map(own).sum::<usize>() as f64 / report.games.len().max(1) as f64
}

fn faults(report: &MatchReport) -> Vec<&str> {
    report.games.iter().filter_map(|game| game.fault.as_deref()).collect()
}

fn text_report<G: Game>(game: &G, task: &Match<'_>, report: &MatchReport, seconds: f64) -> String {
    use std::fmt::Write as _;
    let tally = &report.tally;
    let games = tally.games();
    let mut out = format!("{}: {} against {}\n", full_name(game), task.specs[0].text, task.specs[1].text);
    let mut line = |text: String| writeln!(out, "  {text}").expect("writing to a string");
    if report.interrupted {
        line("interrupted; the games played so far:".to_owned());
    }
    line(format!("games     {} (wins-draws-losses {})", games.total(), wdl(&games)));
    line(format!("by side   first {}, second {}", wdl(&tally.as_first), wdl(&tally.as_second)));
    line(format!("pairs     {} (0, 1/2, 1, 3/2, 2 points)", tally.pairs.0.map(|n| n.to_string()).join(" ")));
    if let (Some(score), Some(elo)) = (tally.pairs.score_interval(), tally.pairs.elo()) {
        let Estimate { value, low, high } = score;
        line(format!("score     {:.1} % (95 %: {:.1} to {:.1})", 100.0 * value, 100.0 * low, 100.0 * high));
        line(format!("Elo       {:+.0} (95 %: {:+.0} to {:+.0})", elo.value, elo.low, elo.high));
        line(format!(
            "superior  {:.1} % (chance that the first player is the stronger one)",
            100.0 * tally.pairs.los()
        ));
    }
    if let Some(sprt) = &task.sprt {
        let (low, high) = sprt.bounds();
        let verdict = match report.verdict {
            Some(Verdict::AcceptH1) => "the first player is stronger",
            Some(Verdict::AcceptH0) => "the first player is not stronger",
            _ => "undecided",
        };
        line(format!("SPRT      {verdict} (llr {:.2}, bounds {low:.2} {high:.2})", sprt.llr(&tally.pairs)));
    }
    line(format!("distinct  {} of {} games differ in their moves", report.distinct, report.games.len()));
    if report.distinct * 2 < report.games.len() {
        line("warning: most games repeat each other; raise --opening-plies".to_owned());
    }
    let own = mean_own_plies(report);
    if !report.games.is_empty() && own < 4.0 {
        line(format!("warning: openings leave the players {own:.1} plies on average; lower --opening-plies"));
    }
    line(format!("length    {:.1} plies, {seconds:.1} s in all", mean_plies(report)));
    for fault in faults(report).iter().take(5) {
        line(format!("fault     {fault}"));
    }
    out
}

fn json_report<G: Game>(game: &G, task: &Match<'_>, report: &MatchReport, seconds: f64) -> serde_json::Value {
    let tally = &report.tally;
    json!({
        "game": full_name(game),
        "players": [task.specs[0].text, task.specs[1].text],
        "games": tally.games(),
        "as_first": tally.as_first,
        "as_second": tally.as_second,
        "pairs": tally.pairs.0,
        "score": tally.pairs.score_interval(),
        "elo": tally.pairs.elo(),
        "los": tally.pairs.los(),
        "llr": task.sprt.map(|sprt| sprt.llr(&tally.pairs)),
        "verdict": report.verdict,
        "distinct": report.distinct,
        "mean_plies": mean_plies(report),
        "seconds": seconds,
        "faults": faults(report),
        "interrupted": report.interrupted,
    })
}
