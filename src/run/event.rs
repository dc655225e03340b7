//! What happens in a run, as typed events.
//!
//! The numbers of an event come out of one method, [`Event::scalars`], so that all who record them record
//! the same.

use crate::play::Resignations;

/// A phase of the cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Self-play; its unit of work is a game.
    Generate,
    /// Training; its unit of work is a step.
    Learn,
    /// The candidate against the best; its unit of work is a game.
    Gate,
    /// The candidate against the anchor of the Elo scale; its unit of work is a game.
    Rating,
}

impl Phase {
    /// Every phase, in the order of a generation.
    pub const ALL: [Self; 4] = [Self::Generate, Self::Learn, Self::Gate, Self::Rating];

    /// What the phase is called in texts for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Generate => "self-play",
            Self::Learn => "training",
            Self::Gate => "gate",
            Self::Rating => "rating games",
        }
    }

    /// What the work is counted in.
    pub fn unit(self) -> &'static str {
        match self {
            Self::Generate | Self::Gate | Self::Rating => "games",
            Self::Learn => "steps",
        }
    }
}

/// The place of an event on an axis of charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Axis {
    /// Training steps since the start of the run.
    Step(u64),
    /// The generation in work.
    Generation(u32),
}

impl Axis {
    /// The number on the axis.
    pub fn position(self) -> u64 {
        match self {
            Self::Step(step) => step,
            Self::Generation(generation) => generation.into(),
        }
    }
}

/// One number to record.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scalar {
    /// Its name, `group/name`.
    pub tag: &'static str,
    /// What it means, one or two sentences.
    pub help: &'static str,
    /// The number; may be infinite or NaN when something went wrong.
    pub value: f64,
}

/// A training step, or the mean over the steps since the last such event.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrainStep {
    /// Steps done since the start of the run, this one included.
    pub step: u64,
    /// The generation that learns.
    pub generation: u32,
    /// Cross-entropy of the policy with the target over the legal moves, in nats.
    pub policy_loss: f64,
    /// Cross-entropy of win, draw and loss with the target, in nats.
    pub value_loss: f64,
    /// Binary cross-entropy of a fact of the final position, in nats; 0 where it is not trained.
    pub ending_loss: f64,
    /// Cross-entropy of the opponent's next move, in nats; 0 where it is not trained.
    pub reply_loss: f64,
    /// What the optimizer minimises: the weighted sum of the loss terms.
    pub total_loss: f64,
    /// Share of positions where the policy's first move is the target's, 0 to 1.
    pub policy_accuracy: f64,
    /// Entropy of the policy, in nats.
    pub policy_entropy: f64,
    /// Entropy of the policy target, in nats: the least that the policy loss can be.
    pub target_entropy: f64,
    /// Mean difference between predicted and real score over bins of predictions (expected calibration
    /// error), 0 to 1.
    pub value_calibration: f64,
    /// Euclidean norm of the gradient before clipping.
    pub grad_norm: f64,
    /// Learning rate of the step.
    pub learning_rate: f64,
    /// Positions trained on in a second.
    pub samples_per_second: f64,
}

/// What games of self-play are like.
#[derive(Clone, Copy, Debug, Default, PartialEq, serde::Serialize)]
pub struct GamesSummary {
    /// Games.
    pub games: u64,
    /// Their plies.
    pub positions: u64,
    /// Those that were searched in full.
    pub policy_positions: u64,
    /// Plies of a game.
    pub mean_length: f64,
    /// Share of games that the first player won.
    pub first_share: f64,
    /// Share of draws.
    pub draw_share: f64,
    /// Share of games that the second player won.
    pub second_share: f64,
    /// Share of games that reached the largest number of plies.
    pub capped_share: f64,
    /// Share of games that ended by repetition.
    pub repetition_share: f64,
    /// Share of games that are unlike all before them.
    pub distinct_share: f64,
}

/// Self-play of one generation.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SelfPlay {
    /// The generation.
    pub generation: u32,
    /// Its games.
    pub played: GamesSummary,
    /// What giving up has come to; `None` where nobody may.
    pub resignations: Option<Resignations>,
    /// Games of a whole second of the phase.
    pub games_per_second: f64,
    /// Positions of a whole second of the phase.
    pub positions_per_second: f64,
    /// Search simulations of a whole second of the phase.
    pub simulations_per_second: f64,
    /// Network evaluations of a whole second of the phase.
    pub evaluations_per_second: f64,
    /// Mean share of a batch that is used, 0 to 1.
    pub batch_fill: f64,
    /// Share of evaluations that the cache answered, 0 to 1; `None` without a cache.
    pub cache_hit_rate: Option<f64>,
    /// Share of the time in which threads waited for evaluations or for each other, 0 to 1.
    pub waiting_share: f64,
}

/// The replay window as a generation learns from it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Replay {
    /// The generation.
    pub generation: u32,
    /// Positions in the window.
    pub positions: u64,
    /// Their size in memory.
    pub bytes: u64,
    /// Generations between the oldest games and now.
    pub age: u32,
}

/// How a gate ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The candidate is the new best.
    Accepted,
    /// The best stays.
    Rejected,
    /// The game limit came before a decision; the best stays.
    Undecided,
}

/// The match of a candidate against the best.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Gate {
    /// The generation of the candidate.
    pub generation: u32,
    /// Games that the candidate won.
    pub wins: u64,
    /// Draws.
    pub draws: u64,
    /// Games that the candidate lost.
    pub losses: u64,
    /// The candidate's score with draws as one half, 0 to 1.
    pub score: f64,
    /// Elo of the candidate above the best.
    pub elo: f64,
    /// The 95 % interval of that difference.
    pub elo_interval: (f64, f64),
    /// Log-likelihood ratio of the sequential test.
    pub llr: f64,
    /// Games that differ from all others.
    pub distinct_games: u64,
    /// What follows.
    pub verdict: Verdict,
}

/// The strength of a generation on the run's own scale.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Elo {
    /// The generation.
    pub generation: u32,
    /// Its Elo; 0 is the anchor, a player that never changes.
    pub elo: f64,
    /// The 95 % interval.
    pub interval: (f64, f64),
}

/// The distribution of many numbers, such as the weights of a layer.
#[derive(Clone, Debug, PartialEq)]
pub struct Histogram {
    /// The generation.
    pub generation: u32,
    /// What they are: `group/name`.
    pub tag: String,
    /// Smallest and largest number.
    pub range: (f64, f64),
    /// Their sum.
    pub sum: f64,
    /// The sum of their squares.
    pub sum_squares: f64,
    /// Upper ends of the buckets, ascending; the first bucket begins at the smallest number.
    pub limits: Vec<f64>,
    /// Numbers in each bucket.
    pub counts: Vec<u64>,
}

impl Histogram {
    /// Buckets of equal width.
    const BUCKETS: usize = 40;

    /// The distribution of the finite ones of `values`; `None` when there are none.
    pub fn of(generation: u32, tag: impl Into<String>, values: &[f32]) -> Option<Self> {
        let finite = || values.iter().filter(|value| value.is_finite()).map(|&value| f64::from(value));
        let low = finite().fold(f64::INFINITY, f64::min);
        let high = finite().fold(f64::NEG_INFINITY, f64::max);
        if low > high {
            return None;
        }
        let buckets = if low < high { Self::BUCKETS } else { 1 };
        let width = (high - low) / buckets as f64;
        let mut limits: Vec<f64> = (1..=buckets).map(|index| low + width * index as f64).collect();
        limits[buckets - 1] = high;
        let mut counts = vec![0; buckets];
        let (mut sum, mut sum_squares) = (0.0, 0.0);
        for value in finite() {
            let bucket = if width > 0.0 { ((value - low) / width) as usize } else { 0 };
            counts[bucket.min(buckets - 1)] += 1;
            sum += value;
            sum_squares += value * value;
        }
        Some(Self { generation, tag: tag.into(), range: (low, high), sum, sum_squares, limits, counts })
    }
}

/// Something that happened in a run.
#[derive(Clone, Debug, PartialEq)]
pub enum Event {
    /// Work begins, on a new run or on an old one.
    RunStarted {
        /// The folder of the run.
        run: String,
        /// The game with its options.
        game: String,
        /// Whether the run was begun earlier.
        resumed: bool,
        /// The generation in work.
        generation: u32,
        /// Training steps done.
        step: u64,
    },
    /// A phase begins.
    PhaseStarted {
        /// Which.
        phase: Phase,
        /// The generation that it belongs to.
        generation: u32,
        /// Units of work already done (of a resumed phase).
        done: u64,
        /// Units of work in all; for a gate, the most that there can be.
        total: u64,
    },
    /// A phase went on. Told as often as convenient; not recorded.
    Progress {
        /// Which.
        phase: Phase,
        /// Units of work done.
        done: u64,
        /// What else a person wants to know ("5,200 evaluations/s, batch fill 92 %").
        note: String,
    },
    /// A phase is done.
    PhaseFinished {
        /// Which.
        phase: Phase,
        /// The generation that it belongs to.
        generation: u32,
        /// Seconds of work in this session.
        seconds: f64,
    },
    /// Training went on.
    TrainStep(TrainStep),
    /// A batch was left out.
    BatchRejected {
        /// The generation that learns.
        generation: u32,
        /// Training steps done since the start of the run.
        step: u64,
        /// What was not finite.
        term: String,
        /// How many of the generation that makes.
        count: u64,
        /// Where the batch is kept; `None` when enough of them are.
        file: Option<String>,
    },
    /// The training returned to the beginning of a generation.
    RolledBack {
        /// The generation that learns.
        generation: u32,
        /// Training steps done since the start of the run, of which the later ones are forgotten.
        step: u64,
        /// Why.
        reason: String,
        /// Factor of the learning rate from now on.
        rate_factor: f64,
    },
    /// Self-play of a generation is done.
    SelfPlay(SelfPlay),
    /// The replay window was filled.
    Replay(Replay),
    /// A gate is decided.
    Gate(Gate),
    /// The strength of a generation was estimated.
    Elo(Elo),
    /// A distribution was taken.
    Histogram(Histogram),
    /// A game of self-play, drawn for people.
    SampleGame {
        /// The generation.
        generation: u32,
        /// Several lines.
        text: String,
    },
    /// A generation is done.
    GenerationFinished {
        /// Which.
        generation: u32,
        /// Training steps done.
        step: u64,
        /// The generation of the best network.
        best: u32,
        /// Self-play games of the whole run.
        games: u64,
        /// Positions of the whole run.
        positions: u64,
        /// Hours of work of the whole run.
        hours: f64,
        /// Hours of processor time of that.
        cpu_hours: f64,
    },
    /// Something worth knowing.
    Notice(String),
    /// Something that may need a person.
    Warning(String),
    /// Work ends.
    RunStopped {
        /// Why.
        reason: String,
        /// Whether the goal is reached; otherwise the same command goes on.
        complete: bool,
    },
    /// Work ends because something failed; whoever runs the cycle gets the error and shows it.
    RunFailed {
        /// The error.
        reason: String,
    },
}

impl Event {
    /// What the event is called in records.
    pub fn name(&self) -> &'static str {
        match self {
            Self::RunStarted { .. } => "run_started",
            Self::PhaseStarted { .. } => "phase_started",
            Self::Progress { .. } => "progress",
            Self::PhaseFinished { .. } => "phase_finished",
            Self::TrainStep(_) => "train",
            Self::BatchRejected { .. } => "batch_rejected",
            Self::RolledBack { .. } => "rolled_back",
            Self::SelfPlay(_) => "self_play",
            Self::Replay(_) => "replay",
            Self::Gate(_) => "gate",
            Self::Elo(_) => "elo",
            Self::Histogram(_) => "histogram",
            Self::SampleGame { .. } => "sample_game",
            Self::GenerationFinished { .. } => "generation",
            Self::Notice(_) => "notice",
            Self::Warning(_) => "warning",
            Self::RunStopped { .. } => "run_stopped",
            Self::RunFailed { .. } => "run_failed",
        }
    }

    /// Where the event lies on the charts; `None` for what is on none.
    pub fn axis(&self) -> Option<Axis> {
        match self {
            Self::TrainStep(TrainStep { step, .. })
            | Self::BatchRejected { step, .. }
            | Self::RolledBack { step, .. } => Some(Axis::Step(*step)),
            Self::SelfPlay(SelfPlay { generation, .. })
            | Self::Replay(Replay { generation, .. })
            | Self::Gate(Gate { generation, .. })
            | Self::Elo(Elo { generation, .. })
            | Self::Histogram(Histogram { generation, .. })
            | Self::SampleGame { generation, .. }
            | Self::PhaseFinished { generation, .. }
            | Self::GenerationFinished { generation, .. } => Some(Axis::Generation(*generation)),
            _ => None,
        }
    }

    /// The numbers of the event, each to be recorded at its [`axis`](Event::axis).
    pub fn scalars(&self) -> Vec<Scalar> {
        super::scalars::of(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn histograms_hold_every_finite_number_once() {
        let values = [0.0, 1.0, -1.0, 0.5, f32::NAN, f32::INFINITY, 1.0];
        let histogram = Histogram::of(1, "w", &values).unwrap();
        assert_eq!(histogram.counts.iter().sum::<u64>(), 5);
        assert_eq!((histogram.counts[0], histogram.counts[39]), (1, 2));
        assert_eq!((histogram.range, histogram.sum, histogram.sum_squares), ((-1.0, 1.0), 1.5, 3.25));
        assert!(histogram.limits.is_sorted() && histogram.limits.len() == histogram.counts.len());
        let equal = Histogram::of(1, "w", &[2.0; 7]).unwrap();
        assert_eq!((equal.limits, equal.counts), (vec![2.0], vec![7]));
        assert_eq!(Histogram::of(1, "w", &[f32::NAN]), None);
    }
}
