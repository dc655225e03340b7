//! A model's card: what it is, how it was trained, how strong it is, how it is used.

use std::fmt::Write as _;

use serde_json::Value;

use crate::game::{Game, action_texts, full_name};
use crate::net::Checkpoint;
use crate::play::{MatchParams, MatchReport, Openings, Player, PoolError, PoolParams};
use crate::run::state::RunState;
use crate::util::machine::Cpu;
use crate::util::rng::{Purpose, Stream};
use crate::util::stats::{GameCounts, Tally as _};
use crate::util::text::plain;

use super::hold;

/// How the strength on a card is measured.
#[derive(Clone, Copy, Debug)]
pub struct CardParams {
    /// Games against each opponent, an even number: each opening is played from both sides.
    pub games: usize,
    /// Random plies at the beginning of each pair.
    pub opening_plies: u32,
    /// Seed of openings and players.
    pub seed: u64,
    /// Worker threads.
    pub threads: usize,
}

/// Each of the model's settings against each opponent, in one match.
///
/// # Errors
/// When an evaluator fails.
pub fn measure<G: Game>(
    game: &G,
    settings: Vec<Player<G>>,
    opponents: Vec<Player<G>>,
    params: CardParams,
    stop: &(dyn Fn() -> bool + Sync),
    progress: &(dyn Fn(&[crate::play::MatchTally]) + Sync),
) -> Result<MatchReport, PoolError> {
    let ours = settings.len();
    let all = ours + opponents.len();
    let encounters: Vec<[usize; 2]> = (0..ours).flat_map(|a| (ours..all).map(move |b| [a, b])).collect();
    let games = params.games * encounters.len();
    let threads = params.threads.min(games).max(1);
    let params = MatchParams {
        encounters,
        pairs: params.games / 2,
        openings: Openings::random(params.opening_plies as usize, Stream::keyed(params.seed, Purpose::Opening, &[])),
        sprt: None,
        seed: params.seed,
        pool: PoolParams { threads, slots: (games / threads).clamp(1, 64) },
    };
    let players: Vec<Player<G>> = settings.into_iter().chain(opponents).collect();
    Ok(hold(game, &players, &params, None, Vec::new(), stop, progress)?.report)
}

/// How a model was trained, where its run is at hand.
#[derive(Debug)]
pub struct Training {
    /// How far the run is.
    pub state: RunState,
    /// The config as it was given.
    pub config: String,
}

/// Everything on a card.
#[derive(Debug)]
pub struct Card<'a> {
    /// The model's name, that of its files.
    pub name: &'a str,
    /// The network.
    pub checkpoint: &'a Checkpoint,
    /// Its run.
    pub training: Option<&'a Training>,
    /// The machine that made the card.
    pub machine: &'a Cpu,
    /// The model's settings, as `sparring pit` takes them behind its path.
    pub settings: &'a [String],
    /// Its opponents.
    pub opponents: &'a [String],
    /// The match of [`measure`].
    pub report: &'a MatchReport,
    /// How it was played.
    pub params: CardParams,
}

impl Card<'_> {
    /// The card as Markdown.
    pub fn text<G: Game>(&self, game: &G) -> String {
        let (info, name) = (&self.checkpoint.info, self.name);
        let licence = shown(info.licence.as_deref().unwrap_or("not stated"));
        let mut out = format!("# {}\n\n", shown(name));
        let network = &info.network;
        let _ = writeln!(
            out,
            "A network that plays {}, made by `sparring` {}: {network}; {} parameters, {:.1} million floating-point operations for \
             a position. Licence: {licence}.\n",
            shown(&info.game),
            shown(&info.tool_version),
            network.parameter_count(),
            network.flops() as f64 / 1e6,
        );
        out += "## How it was trained\n\n";
        let start = self.training.and_then(|training| {
            let config: Value = serde_json::from_str(&training.config).ok()?;
            config.get("start")?.as_str().map(str::to_owned)
        });
        match (start, self.training) {
            (Some(start), _) => {
                let _ = writeln!(
                    out,
                    "By self-play alone, from the weights of `{}`; the numbers are of what came after.\n",
                    code(&start)
                );
            }
            (None, Some(_)) => out += "By self-play alone, from random weights.\n\n",
            (None, None) => out += "By self-play alone.\n\n",
        }
        let _ = writeln!(out, "| | |\n|---|---|\n| training steps | {} |\n| samples | {} |", info.step, info.samples);
        let _ = writeln!(out, "| generation | {} |", info.generation);
        if let Some(Training { state, .. }) = self.training {
            let _ = writeln!(out, "| games of the whole run | {} |\n| positions | {} |", state.games, state.positions);
            let _ = writeln!(out, "| hours | {:.2} |", state.hours);
            // Runs of older versions, and other systems, do not know it.
            if state.cpu_hours > 0.0 {
                let _ = writeln!(out, "| hours of processor time | {:.2} |", state.cpu_hours);
            }
            let _ = writeln!(out, "| machine (that of this card) | {} |", self.machine_text());
        }
        if let Some(Training { config, .. }) = self.training {
            let _ = writeln!(out, "\nThe config:\n\n```json\n{}\n```", config.trim_end());
        }
        out += "\n## How strong it is\n\n";
        let _ = writeln!(
            out,
            "{} games against each opponent, each opening from both sides ({} random plies, seed {}), measured on {}. Score is the \
             share of points; Elo the difference that explains it; both with 95 % intervals.\n",
            self.params.games,
            self.params.opening_plies,
            self.params.seed,
            self.machine_text(),
        );
        out += "| setting | opponent | wins, draws, losses | score | Elo |\n|---|---|---|---|---|\n";
        for (setting, opponent, counts) in self.rows() {
            let score = counts.score_interval().map_or_else(String::new, |score| {
                let [value, low, high] = [score.value, score.low, score.high].map(|share| 100.0 * share);
                format!("{value:.1} % ({low:.1} to {high:.1})")
            });
            let elo = counts.elo().as_ref().map_or_else(String::new, super::signed_interval);
            let _ = writeln!(
                out,
                "| `{}` | `{}` | {}-{}-{} | {score} | {elo} |",
                code(setting),
                code(opponent),
                counts.wins,
                counts.draws,
                counts.losses,
            );
        }
        let _ = writeln!(
            out,
            "\nThe same again:\n\n```sh\nsparring card {name}.safetensors -o again.md --against {} --settings {} --games {} \
             --opening-plies {} --seed {}\n```",
            quoted(&self.opponents.join(",")),
            quoted(&self.settings.join(",")),
            self.params.games,
            self.params.opening_plies,
            self.params.seed,
            name = quoted(name),
        );
        out + &self.usage(game)
    }

    /// Setting, opponent and what came out, of each encounter.
    fn rows(&self) -> impl Iterator<Item = (&str, &str, GameCounts)> {
        self.report
            .encounters
            .iter()
            .zip(&self.report.tallies)
            .map(|(&[a, b], tally)| (&*self.settings[a], &*self.opponents[b - self.settings.len()], tally.games()))
    }

    fn machine_text(&self) -> String {
        format!("{}, {} threads", self.machine.model, self.machine.threads)
    }

    fn usage<G: Game>(&self, game: &G) -> String {
        let (name, input) = (self.name, self.checkpoint.info.network.input);
        let mut out = "\n## What goes in and comes out\n\n".to_owned();
        let _ = writeln!(
            out,
            "`planes`, float32 `[batch, {}, {}, {}]`, seen by the player to move:\n",
            input.channels, input.height, input.width
        );
        for (index, plane) in game.plane_names().iter().enumerate() {
            let _ = writeln!(out, "{index}. {plane}");
        }
        let actions: Vec<String> = action_texts(game).into_iter().filter(|text| text != "-").take(6).collect();
        let _ = writeln!(
            out,
            "\n`policy`, float32 `[batch, {}]`: logits of the moves {}, ...; those of illegal moves mean nothing. `value`, float32 \
             `[batch, 3]`: logits of win, draw and loss of the player to move. `sparring ugi` gives planes, legal moves and the \
             list of moves (`query planes`, `query legal`, `query actions`).\n",
            game.action_count(),
            actions.join(", "),
        );
        let _ = writeln!(
            out,
            "## How to use it\n\n```sh\nsparring play {word}.safetensors\nsparring export {word}.safetensors --format onnx\npip install onnxruntime \
             numpy\n```\n",
            word = quoted(name),
        );
        let _ = write!(out, "Its best first move, and win, draw and loss as logits:\n\n```python\n");
        let lines = [
            "import numpy, onnxruntime, subprocess".to_owned(),
            format!("session = onnxruntime.InferenceSession(\"{name}.onnx\")"),
            format!(
                "ask = lambda what: subprocess.run([\"sparring\", \"ugi\", \"{}\", \"random\"], \
                 input=\"position startpos\\nquery \" + what, text=True, capture_output=True).stdout.split(\"response \")[1].split()",
                full_name(game)
            ),
            format!(
                "policy, value = session.run([\"policy\", \"value\"], {{\"planes\": numpy.array(ask(\"planes\"), \
                 numpy.float32).reshape(1, {}, {}, {})}})",
                input.channels, input.height, input.width
            ),
            "logits = dict(zip(ask(\"actions\"), policy[0]))".to_owned(),
            "print(max(ask(\"legal\"), key=logits.get), value[0])".to_owned(),
        ];
        out += &lines.join("\n");
        out += "\n```\n";
        out
    }
}

/// Text within backticks, also in a table.
fn code(text: &str) -> String {
    plain(text).replace('`', "'").replace('|', "\\|")
}

/// Text from a file or a command line, as plain Markdown on one line.
fn shown(text: &str) -> String {
    let escaped = |sign: char| match sign {
        '<' => "&lt;".to_owned(),
        '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '#' => format!("\\{sign}"),
        sign => sign.to_string(),
    };
    plain(text).chars().map(escaped).collect()
}

/// A word of a command line, quoted where a shell would take it for something else.
fn quoted(word: &str) -> String {
    let safe = |sign: char| sign.is_ascii_alphanumeric() || "@=:,./_-".contains(sign);
    if word.chars().all(safe) { word.to_owned() } else { format!("'{}'", word.replace('\'', "'\\''")) }
}

/// The numbers of a card, for programs.
pub fn json(card: &Card<'_>) -> Value {
    let rows = card.rows().map(|(setting, opponent, counts)| {
        let score = counts.score_interval().map(|score| [score.value, score.low, score.high]);
        serde_json::json!({
            "setting": setting,
            "opponent": opponent,
            "wins": counts.wins,
            "draws": counts.draws,
            "losses": counts.losses,
            "score": score,
        })
    });
    serde_json::json!({ "checkpoint": card.checkpoint.info, "strength": rows.collect::<Vec<Value>>() })
}
