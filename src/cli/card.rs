//! `sparring card`.

use std::path::{Path, PathBuf};

use super::export::failure;
use super::live::Live;
use super::pit::parse_games;
use super::threads::Threads;
use super::{Failure, Outcome, outside_of_runs, print, usage_of};
use crate::arena::{Card, CardParams, Training, card_json, measure};
use crate::export::{Request, export, place};
use crate::game::Game;
use crate::games::{self, GameVisitor};
use crate::net::{Checkpoint, EngineChoice, FileKind, OnnxForm};
use crate::run::config::opening_plies;
use crate::run::dir::RunDir;
use crate::run::player::{PlayerSpec, load_network};
use crate::run::state::RunState;
use crate::run::stop::{Signals, StopFlag};
use crate::util::machine::cpu;
use crate::util::publish::AtomicFile;
use crate::util::text::read_text;

/// Write a model's card and, beside it, the model: how it was trained, how strong it is, how it is used
///
/// The strength is measured now, in matches against players that never change. With the folder of a run the card tells of its
/// training: config, games, hours.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    sparring card runs/uttt -o models/uttt.md --licence CC-BY-4.0\n  \
    sparring card runs/tictactoe -o tictactoe.md --against random,solver --settings @policy --games 20\n  \
    sparring card models/connect4.safetensors -o models/connect4.md --force")]
pub struct CardVerb {
    /// The folder of a run (its best checkpoint), a checkpoint, or an exported file
    model: PathBuf,
    /// The card to write; the model is written beside it, with the ending .safetensors
    #[arg(short, long, value_name = "FILE.md")]
    output: PathBuf,
    /// The opponents (as in `sparring pit`)
    #[arg(long, value_delimiter = ',', value_name = "PLAYER,...", default_value = "random,mcts:1000,mcts:10000")]
    against: Vec<String>,
    /// How the model plays: each setting meets each opponent
    #[arg(long, value_name = "@OPTION[@...],...", default_value = "@policy,@sims=100,@sims=400", value_parser = parse_settings)]
    settings: Settings,
    /// Games against each opponent, an even number
    #[arg(long, default_value = "100", value_name = "N", value_parser = parse_games)]
    games: usize,
    /// Random plies at the beginning of each pair of games [default: 1 in tictactoe, 2 in connect4, 4 in the others]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1000))]
    opening_plies: Option<u32>,
    /// Under which licence the model may be used [default: as its checkpoint says]
    #[arg(long, value_name = "TEXT")]
    licence: Option<String>,
    /// Replace the files if they exist
    #[arg(long)]
    force: bool,
    /// Seed of openings and players
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    #[command(flatten)]
    threads: Threads,
    /// Print what was measured as one JSON document
    #[arg(long)]
    json: bool,
}

/// What stands behind the name of the model.
#[derive(Clone)]
struct Settings(Vec<String>);

/// `@policy,@sims=10@c_puct=2` are two settings: each begins with `@` after a comma. A comma elsewhere belongs to the setting.
fn parse_settings(text: &str) -> Result<Settings, String> {
    let Some(text) = text.strip_prefix('@') else {
        return Err(format!("a setting begins with `@`, such as @policy or @sims=400; {text:?} does not"));
    };
    Ok(Settings(text.split(",@").map(|setting| format!("@{setting}")).collect()))
}

impl CardVerb {
    pub(super) fn run(self) -> Outcome {
        let usage = |message: String| Failure::Usage(message);
        let output = &self.output;
        if output.extension().is_none_or(|end| end != "md") {
            return Err(usage(format!("a card is a file FILE.md, not {}", output.display())));
        }
        let weights = output.with_extension("safetensors");
        let name = output.file_stem().unwrap_or_default().to_string_lossy();
        // It stands in commands, in Python and in Markdown.
        let plain = |sign: char| sign.is_alphanumeric() || " ._-+=,()".contains(sign);
        if !name.chars().all(plain) || name.starts_with('-') {
            return Err(usage(format!("a model's name is made of letters, digits and ` ._-+=,()`; {name:?} is not")));
        }
        for path in [output, &weights] {
            outside_of_runs(path)?;
            let path = place(path, self.force).map_err(failure)?;
            // Better told now than after the matches.
            drop(AtomicFile::create(&path)?);
        }
        let mut checkpoint = load_network(&self.model).map_err(|error| Failure::of(&error, error.is_usage()))?;
        if self.licence.is_some() {
            checkpoint.info.licence = self.licence.clone().filter(|text| !text.trim().is_empty());
        }
        let training = training(&self.model)?;
        let name = checkpoint.info.game.clone();
        games::dispatch(&name, Task { verb: &self, checkpoint, training, weights })?
    }
}

/// What a run's folder says about its training.
fn training(model: &Path) -> Result<Option<Training>, Failure> {
    let dir = RunDir::new(model);
    if !model.is_dir() {
        return Ok(None);
    }
    let state = RunState::load(&dir)?.unwrap_or_default();
    let config =
        read_text(&dir.config()).map_err(|error| Failure::Failed(format!("{}: {error}", dir.config().display())))?;
    Ok(Some(Training { state, config }))
}

struct Task<'a> {
    verb: &'a CardVerb,
    checkpoint: Checkpoint,
    training: Option<Training>,
    weights: PathBuf,
}

impl GameVisitor for Task<'_> {
    type Output = Outcome;

    fn visit<G: Game>(self, game: G) -> Outcome {
        let verb = self.verb;
        let stop = StopFlag::new();
        let _signals = Signals::listen(&stop)?;
        let engine = EngineChoice::default();
        let open = |text: &str| PlayerSpec::parse(text).and_then(|spec| spec.open(&game, &engine)).map_err(usage_of);
        let path = verb.model.display();
        let settings =
            verb.settings.0.iter().map(|setting| open(&format!("{path}{setting}"))).collect::<Result<Vec<_>, _>>()?;
        let opponents = verb.against.iter().map(|text| open(text)).collect::<Result<Vec<_>, _>>()?;
        let params = CardParams {
            games: verb.games,
            opening_plies: verb.opening_plies.unwrap_or_else(|| opening_plies(&game)),
            seed: verb.seed,
            threads: verb.threads.count(),
        };
        let live = Live::new(settings.len() * opponents.len() * params.games, 0);
        let (stopped, tell) = (|| stop.is_set(), |tallies: &[_]| live.tell(tallies));
        let report = measure(&game, settings, opponents, params, &stopped, &tell)?;
        live.end();
        if report.interrupted {
            return Err(Failure::Interrupted);
        }
        let name = verb.output.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let card = Card {
            name: &name,
            checkpoint: &self.checkpoint,
            training: self.training.as_ref(),
            machine: &cpu(),
            settings: &verb.settings.0,
            opponents: &verb.against,
            report: &report,
            params,
        };
        let text = card.text(&game);
        // There is room for the card before the model is written, and it gets its name after it: without the model it would be of
        // no use.
        let mut file = AtomicFile::create(&place(&verb.output, verb.force).map_err(failure)?)?;
        file.put(text.as_bytes())?;
        file.written()?;
        let (format, form) = (FileKind::Safetensors, OnnxForm::default());
        let request = Request { format, form, path: self.weights.clone(), force: verb.force, positions: 1000 };
        export(&game, &self.checkpoint, &request, &stopped).map_err(failure)?;
        file.publish()?;
        if verb.json {
            return print(&format!("{:#}\n", card_json(&card)));
        }
        print(&format!("{} and {} are written\n", verb.output.display(), self.weights.display()))
    }
}
