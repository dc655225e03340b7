//! `sparring pit`.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::live::Live;
use super::threads::Threads;
use super::{Failure, Outcome, print, usage_of};
use crate::arena::{Begins, GamesFile, Header, Summary, hold};
use crate::game::{Game, Place, full_name};
use crate::games::{self, GameVisitor};
use crate::net::EngineChoice;
use crate::play::{MatchParams, Opening, Openings, PoolParams, gauntlet, round_robin};
use crate::run::config::opening_plies;
use crate::run::player::PlayerSpec;
use crate::run::positions::read_places;
use crate::run::stop::{Signals, StopFlag};
use crate::util::rng::{Purpose, Stream};
use crate::util::stats::Sprt;

/// Let players play a match: paired games, each opening from both sides
///
/// A PLAYER is a checkpoint file or the folder of a run, with any of these behind it: @sims=N, @movetime=MS, @policy (the network
/// alone), @temperature=T, @view=averaged (each position judged through all symmetries), and keys of a config's section
/// `search` such as @algorithm=puct or @fpu_reduction=0.2; `random`; `solver` (perfect play, in tictactoe and connect4); `mcts:SIMULATIONS` (UCB1 with random rollouts, @c=1.0,
/// @movetime=MS); or `engine:COMMAND` (another program that speaks UGI, with @movetime=MS or @nodes=N).
///
/// More than two players meet each other (with --gauntlet the first one meets the others), and are rated together.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring pit runs/uttt@sims=100 mcts:1000 --games 200\n  \
    sparring pit models/uttt.safetensors@policy random --json\n  \
    sparring pit mcts:1000 mcts:1000@c=0.5 --game zener --sprt 0,20\n  \
    sparring pit runs/a runs/b mcts:1000 mcts:10000 --games 400 --anchor mcts:1000\n  \
    sparring pit runs/uttt mcts:1000 --games 1000 --games-out games.jsonl")]
pub struct Pit {
    /// The players, two or more
    #[arg(num_args = 2.., required = true, value_name = "PLAYER")]
    players: Vec<String>,
    /// The game, where no player's network implies it
    #[arg(long, value_name = "GAME")]
    game: Option<String>,
    /// Games of each two players at most, an even number [default: 100, with --sprt 10000]
    #[arg(long, value_name = "N", value_parser = parse_games)]
    games: Option<usize>,
    /// The first player meets the others, which do not meet each other
    #[arg(long)]
    gauntlet: bool,
    /// Simulations of networks (and nodes of engines) that do not say it themselves [default: 100]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000_000), conflicts_with = "movetime")]
    sims: Option<u32>,
    /// Wall time for each move in milliseconds, of players that do not say it themselves
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=86_400_000))]
    movetime: Option<u64>,
    /// Random plies at the beginning of each pair of games [default: 1 in tictactoe, 2 in connect4, 4 in the others]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    opening_plies: Option<u32>,
    /// Begin pairs with the openings of a file, one a line: moves, or a fen
    #[arg(long, value_name = "FILE", conflicts_with = "opening_plies")]
    openings: Option<PathBuf>,
    /// Stop as soon as a sequential test between these Elo differences has decided; ALPHA and BETA are its error rates [default: 0.05]
    #[arg(long, value_name = "ELO0,ELO1[,ALPHA,BETA]", allow_hyphen_values = true, value_parser = parse_sprt)]
    sprt: Option<Sprt>,
    /// The player that stands at Elo 0 when more than two are rated [default: the last one]
    #[arg(long, value_name = "PLAYER")]
    anchor: Option<String>,
    /// Keep the games in a file of JSON lines; the same command goes on from it
    #[arg(long, value_name = "FILE")]
    games_out: Option<PathBuf>,
    /// Seed of openings and players; the same seed gives the same report
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    #[command(flatten)]
    threads: Threads,
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
}

fn usage(message: impl Into<String>) -> Failure {
    Failure::Usage(message.into())
}

impl Pit {
    fn games(&self) -> usize {
        self.games.unwrap_or(if self.sprt.is_some() { 10_000 } else { 100 })
    }

    pub(super) fn run(self) -> Outcome {
        let stop = StopFlag::new();
        if self.sprt.is_some() && self.players.len() > 2 {
            return Err(usage("--sprt compares two players; give it a match of two"));
        }
        if self.anchor.is_some() && self.players.len() == 2 {
            return Err(usage("--anchor is for more than two players; the Elo difference of two needs none"));
        }
        let anchor = match &self.anchor {
            None => self.players.len() - 1,
            Some(name) => {
                let place = self.players.iter().position(|player| player == name);
                place.ok_or_else(|| usage(format!("--anchor {name:?} is none of the players")))?
            }
        };
        let parse = |text: &String| PlayerSpec::parse(text).map_err(|error| usage(error.to_string()));
        let mut specs = self.players.iter().map(parse).collect::<Result<Vec<_>, _>>()?;
        let mut name = self.game.clone();
        let mut networks = Vec::new();
        for spec in &mut specs {
            spec.limit(self.sims, self.movetime.map(Duration::from_millis));
            let checkpoint = spec.checkpoint().map_err(usage_of)?;
            networks.push(checkpoint.as_ref().map(|checkpoint| checkpoint.weights.digest()));
            name = name.or(checkpoint.map(|checkpoint| checkpoint.info.game));
        }
        let name = name.ok_or_else(|| usage("name the game with --game: no player implies it"))?;
        let task = Match { pit: &self, specs, networks, anchor, stop };
        games::dispatch(&name, task).map_err(|error| usage(error.to_string()))?
    }
}

pub(super) fn parse_games(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(games) if (2..=1_000_000).contains(&games) && games % 2 == 0 => Ok(games),
        _ => Err("expected an even number from 2 to 1000000: every opening is played from both sides".to_owned()),
    }
}

fn parse_sprt(text: &str) -> Result<Sprt, String> {
    let numbers: Result<Vec<f64>, _> = text.split(',').map(|number| number.trim().parse()).collect();
    let sprt = match numbers.as_deref() {
        Ok([elo0, elo1]) => Sprt::new(*elo0, *elo1),
        Ok([elo0, elo1, alpha, beta]) => Sprt { alpha: *alpha, beta: *beta, ..Sprt::new(*elo0, *elo1) },
        _ => return Err(
            "expected two Elo differences such as 0,20, or with both error rates behind them such as 0,20,0.05,0.05"
                .to_owned(),
        ),
    };
    sprt.check().map_err(|error| error.to_string())?;
    Ok(sprt)
}

struct Match<'a> {
    pit: &'a Pit,
    specs: Vec<PlayerSpec>,
    /// Digests of the players' networks.
    networks: Vec<Option<String>>,
    anchor: usize,
    stop: StopFlag,
}

impl Match<'_> {
    /// How the match is played, and its openings in words.
    fn params<G: Game>(&self, game: &G) -> Result<(MatchParams<G>, String, bool), Failure> {
        let pit = self.pit;
        let players = self.specs.len();
        let encounters = if pit.gauntlet { gauntlet(players) } else { round_robin(players) };
        let pairs = pit.games() / 2;
        let (openings, told, repeated) = match &pit.openings {
            Some(file) => {
                let places = read_places(game, file).map_err(usage)?;
                let opening = |place: Place<G>| Opening { start: place.start, moves: place.moves };
                let list: Vec<Opening<G>> = places.into_iter().map(opening).collect();
                let text = |opening: &Opening<G>| {
                    let moves: Vec<String> = opening.moves.iter().map(|&action| game.action_text(action)).collect();
                    format!("{} {}\n", game.state_text(&opening.start), moves.join(" "))
                };
                let digest = crc32fast::hash(list.iter().map(text).collect::<String>().as_bytes());
                let told = format!("a file of {} ({digest:08x})", list.len());
                let repeated = list.len() < pairs;
                (Openings::list(list), told, repeated)
            }
            None => {
                let plies = pit.opening_plies.unwrap_or_else(|| opening_plies(game));
                let random = Stream::keyed(pit.seed, Purpose::Opening, &[]);
                (Openings::random(plies as usize, random), format!("{plies} random plies"), false)
            }
        };
        // Better told now than as the reason for which every game is lost.
        if self.specs.iter().any(PlayerSpec::is_solver)
            && let Some(mut solver) = game.solver()
            && let Err(refusal) = solver.solve(&openings.clone().get(game, 0).position(game))
        {
            return Err(usage(format!("solver: {refusal}; begin later, with --opening-plies or --openings")));
        }
        let all = 2 * pairs * encounters.len();
        let threads = pit.threads.count().min(all);
        // A clock must not run for other games of the thread.
        let slots = if self.specs.iter().any(PlayerSpec::is_timed) { 1 } else { (all / threads).clamp(1, 64) };
        let pool = PoolParams { threads, slots };
        Ok((MatchParams { encounters, pairs, openings, sprt: pit.sprt, seed: pit.seed, pool }, told, repeated))
    }
}

impl GameVisitor for Match<'_> {
    type Output = Outcome;

    fn visit<G: Game>(self, game: G) -> Outcome {
        let (params, openings, repeated_openings) = self.params(&game)?;
        // Only now: to read the openings from a pipe may take for ever.
        let _signals = Signals::listen(&self.stop)?;
        let all = 2 * params.pairs * params.encounters.len();
        let engine = EngineChoice::default();
        let open = |spec: &PlayerSpec| spec.open(&game, &engine).map_err(usage_of);
        let players = self.specs.iter().map(open).collect::<Result<Vec<_>, _>>()?;
        let (file, played) = match &self.pit.games_out {
            Some(path) => {
                let header = Header {
                    players: self.pit.players.clone(),
                    networks: self.networks.clone(),
                    limits: match (self.pit.sims, self.pit.movetime) {
                        (Some(simulations), _) => format!("{simulations} simulations"),
                        (None, Some(time)) => format!("{time} ms"),
                        (None, None) => String::new(),
                    },
                    encounters: params.encounters.clone(),
                    ..Header::new(&game, openings, self.pit.seed)
                };
                let begins = Begins { openings: &params.openings, games: all as u64 };
                let opened = GamesFile::open(&game, path, header, Some(&begins));
                let (file, played) = opened.map_err(|error| Failure::of(&error, error.is_usage()))?;
                (Some(file), played)
            }
            None => (None, Vec::new()),
        };
        let live = Live::new(all, played.len());
        let began = Instant::now();
        let stop = || self.stop.is_set();
        let held = hold(&game, &players, &params, file, played, &stop, &|tallies| live.tell(tallies))?;
        live.end();
        let summary = Summary {
            game: &full_name(&game),
            players: &self.pit.players,
            report: &held.report,
            sprt: self.pit.sprt,
            seed: self.pit.seed,
            anchor: self.anchor,
            repeated_openings,
            seconds: began.elapsed().as_secs_f64(),
        };
        print(&if self.pit.json { format!("{:#}\n", summary.json()) } else { summary.text() })?;
        held.kept?;
        if held.report.interrupted { Err(Failure::Interrupted) } else { Ok(()) }
    }
}
