//! `sparring analyze`.

use std::path::PathBuf;
use std::time::Duration;

use super::color::Color;
use super::{Failure, Outcome, game_of, print, usage_of};
use crate::analyze::{Analysis, Bounds, Live, Look, NoSearch, Searcher, analyze, analyze_all, progress, table};
use crate::game::{Game, Place};
use crate::games::{self, GameVisitor};
use crate::net::EngineChoice;
use crate::run::player::PlayerSpec;
use crate::run::positions::read_places;
use crate::run::stop::{Signals, StopFlag};

/// Moves of a table where nothing is said.
const TOP: usize = 10;
/// Characters of a line outside of terminals.
const WIDTH: u16 = 80;

/// Analyse positions: ranked moves with visits, values, expected lines and proven results
///
/// The player is a checkpoint file, the folder of a run, or `mcts:SIMULATIONS`, with options behind it as in `sparring pit`. It
/// searches without noise, a network always by PUCT. Values and results are those of the player to move; `wins in 3` means after
/// three single moves at the latest, this one counted. Ctrl-C ends the search with what it has found so far: exit
/// code 0 with --infinite, else 130.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring analyze runs/uttt --sims 2000\n  \
    sparring analyze mcts:20000 --game connect4 --moves 4 4 4\n  \
    sparring analyze runs/uttt --moves e5 --infinite\n  \
    sparring analyze runs/zener --positions positions.txt --movetime 500 --json")]
pub struct Analyze {
    /// Who analyses
    player: String,
    /// The game, where no network implies it
    #[arg(long, value_name = "GAME")]
    game: Option<String>,
    /// The position [default: the start]
    #[arg(long, value_name = "FEN")]
    position: Option<String>,
    /// Moves made from the position on
    #[arg(long, value_name = "MOVE", num_args = 1..)]
    moves: Vec<String>,
    /// A file of positions, one a line: `FEN [moves M...]` or `startpos [moves M...]`; `#` begins a comment
    #[arg(long, value_name = "FILE", conflicts_with_all = ["position", "moves", "infinite"])]
    positions: Option<PathBuf>,
    /// Simulations for each position [default: the player's]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4_000_000_000))]
    sims: Option<u32>,
    /// Milliseconds for each position, instead of simulations
    #[arg(long, value_name = "MS", value_parser = clap::value_parser!(u64).range(1..=604_800_000), conflicts_with = "sims")]
    movetime: Option<u64>,
    /// Search until Ctrl-C, or until the result is proven
    #[arg(long, conflicts_with_all = ["sims", "movetime"])]
    infinite: bool,
    /// Moves to show [default: 10 in tables, all in JSON]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    top: Option<u32>,
    /// Threads; they change how long it takes and nothing else [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Option<u32>,
    /// One JSON document instead of tables; with --positions an array
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    color: Color,
}

impl Analyze {
    pub(super) fn run(self) -> Outcome {
        let spec = PlayerSpec::parse(&self.player).map_err(|error| Failure::Usage(error.to_string()))?;
        if !spec.searches() {
            // Before another program is started in vain.
            return Err(Failure::Usage(NoSearch(self.player).to_string()));
        }
        let name = game_of(&spec, self.game.as_ref())?;
        games::dispatch(&name, Desk { order: self, spec }).map_err(|error| Failure::Usage(error.to_string()))?
    }

    /// How tables look on a stream that `terminal` is.
    fn look(&self, terminal: &console::Term, color: bool) -> Look {
        let width = terminal.size_checked().filter(|_| terminal.is_term()).map_or(WIDTH, |(_, width)| width);
        Look { top: self.top.map_or(TOP, |top| top as usize), width: width.into(), color }
    }

    /// The analysis with as many moves as are wanted in a document.
    fn cut(&self, mut analysis: Analysis) -> Analysis {
        analysis.moves.truncate(self.top.map_or(usize::MAX, |top| top as usize));
        analysis
    }
}

struct Desk {
    order: Analyze,
    spec: PlayerSpec,
}

impl GameVisitor for Desk {
    type Output = Outcome;

    fn visit<G: Game>(self, game: G) -> Outcome {
        let Self { order, spec } = self;
        let places = order.positions.as_deref().map(|path| read_places(&game, path));
        let places = places.transpose().map_err(Failure::Usage)?;
        // Only now: to read from a pipe may take for ever.
        let stop = StopFlag::new();
        let _signals = Signals::listen(&stop)?;
        let moves: Vec<&str> = order.moves.iter().flat_map(|text| text.split_whitespace()).collect();
        let place = Place::new(&game, order.position.as_deref(), &moves);
        let place = place.map_err(|problem| Failure::Usage(format!("--position and --moves: {problem}")))?;
        let player = spec.open(&game, &EngineChoice::default()).map_err(usage_of)?;
        let mut searcher = Searcher::new(player).map_err(|error| Failure::Usage(error.to_string()))?;
        if let Some(threads) = order.threads {
            searcher.set_threads(threads as usize);
        }
        let bounds = match (order.sims, order.movetime) {
            _ if order.infinite => Bounds::simulations(u32::MAX),
            (Some(simulations), _) => Bounds::simulations(simulations),
            (None, Some(time)) => Bounds { time: Some(Duration::from_millis(time)), ..Bounds::simulations(u32::MAX) },
            (None, None) => Bounds { time: searcher.time(), ..Bounds::simulations(searcher.simulations()) },
        };
        match places {
            Some(places) => order.several(&game, &mut searcher, &places, &bounds, &stop),
            None => order.one(&game, &mut searcher, &place, &bounds, &stop),
        }
    }
}

impl Analyze {
    fn one<G: Game>(
        &self,
        game: &G,
        searcher: &mut Searcher<G>,
        place: &Place<G>,
        bounds: &Bounds,
        stop: &StopFlag,
    ) -> Outcome {
        let live = Live::new();
        let board = game.paint(&place.state, place.moves.last().copied());
        let look = self.look(&console::Term::stderr(), self.color.of_stderr());
        let mut tell = |analysis: &Analysis| {
            let text = if live.is_terminal() {
                table(analysis, &board.render(look.color), look)
            } else {
                progress(analysis, look)
            };
            live.show(&text);
        };
        let pace = live.pace(self.infinite);
        let found = analyze(game, searcher, place, bounds, &|| stop.is_set(), pace, &mut tell)?;
        live.clear();
        let Some(analysis) = found else { return Err(Failure::Interrupted) };
        if self.json {
            print(&(serde_json::to_string_pretty(&self.cut(analysis))? + "\n"))?;
        } else {
            let look = self.look(&console::Term::stdout(), self.color.of_stdout());
            print(&table(&analysis, &board.render(look.color), look))?;
        }
        if stop.is_set() && !self.infinite { Err(Failure::Interrupted) } else { Ok(()) }
    }

    fn several<G: Game>(
        &self,
        game: &G,
        searcher: &mut Searcher<G>,
        places: &[Place<G>],
        bounds: &Bounds,
        stop: &StopFlag,
    ) -> Outcome {
        let look = self.look(&console::Term::stdout(), self.color.of_stdout());
        let (mut document, mut printed, mut count) = (Vec::new(), Ok(()), 0);
        analyze_all(game, searcher, places, bounds, &|| stop.is_set(), &mut |analysis, place| {
            count += 1;
            if self.json {
                document.push(self.cut(analysis));
            } else if printed.is_ok() {
                let gap = if count == 1 { "" } else { "\n" };
                let board = game.paint(&place.state, place.moves.last().copied()).render(look.color);
                printed = print(&format!("{gap}{}", table(&analysis, &board, look)));
            }
        })?;
        printed?;
        if self.json {
            print(&(serde_json::to_string_pretty(&document)? + "\n"))?;
        }
        if stop.is_set() { Err(Failure::Interrupted) } else { Ok(()) }
    }
}
