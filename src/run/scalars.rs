//! The numbers of each event, with their names and meanings.

use super::event::{Elo, Event, Gate, Phase, Replay, Scalar, SelfPlay, TrainStep, Verdict};

/// The numbers of `event`.
pub(super) fn of(event: &Event) -> Vec<Scalar> {
    match event {
        Event::TrainStep(step) => train(step),
        Event::BatchRejected { count, .. } => vec![scalar(
            "train/rejected_batches",
            "Batches of the generation that were left out because a loss or gradient was not finite.",
            *count as f64,
        )],
        Event::RolledBack { rate_factor, .. } => vec![scalar(
            "train/rate_factor",
            "Factor of the learning rate since the training returned to the beginning of a generation.",
            *rate_factor,
        )],
        Event::SelfPlay(summary) => self_play(summary),
        Event::Replay(replay) => self::replay(replay),
        Event::Gate(gate) => self::gate(gate),
        Event::Elo(elo) => self::elo(elo),
        Event::PhaseFinished { phase, seconds, .. } => vec![match phase {
            Phase::Generate => scalar("time/self_play", "Seconds of self-play.", *seconds),
            Phase::Learn => scalar("time/training", "Seconds of training.", *seconds),
            Phase::Gate => scalar("time/gate", "Seconds of the gate.", *seconds),
            Phase::Rating => scalar("time/rating", "Seconds of the games against the anchor.", *seconds),
        }],
        Event::GenerationFinished { step, best, games, positions, hours, cpu_hours, .. } => vec![
            scalar("run/steps", "Training steps since the start of the run.", *step as f64),
            scalar("run/best_generation", "The generation of the best network.", f64::from(*best)),
            scalar("run/games", "Self-play games since the start of the run.", *games as f64),
            scalar("run/positions", "Positions of these games.", *positions as f64),
            scalar("run/hours", "Hours of work, all sessions together.", *hours),
            scalar("run/cpu_hours", "Hours of processor time, all threads and sessions together.", *cpu_hours),
        ],
        _ => Vec::new(),
    }
}

fn scalar(tag: &'static str, help: &'static str, value: f64) -> Scalar {
    Scalar { tag, help, value }
}

fn train(step: &TrainStep) -> Vec<Scalar> {
    let mut out = vec![
        scalar(
            "loss/policy",
            "Cross-entropy of the policy with the target over the legal moves, in nats.",
            step.policy_loss,
        ),
        scalar("loss/value", "Cross-entropy of win, draw and loss with the target, in nats.", step.value_loss),
        scalar("loss/total", "What the optimizer minimises: the weighted sum of the loss terms.", step.total_loss),
        scalar(
            "policy/accuracy",
            "Share of positions where the policy's first move is the target's.",
            step.policy_accuracy,
        ),
        scalar("policy/entropy", "Entropy of the policy, in nats.", step.policy_entropy),
        scalar(
            "policy/target_entropy",
            "Entropy of the policy target, in nats: the least that the policy loss can be.",
            step.target_entropy,
        ),
        scalar(
            "value/calibration_error",
            "Mean difference between predicted and real score over bins of predictions; 0 is perfect.",
            step.value_calibration,
        ),
        scalar("train/gradient_norm", "Euclidean norm of the gradient before clipping.", step.grad_norm),
        scalar("train/learning_rate", "Learning rate of the step.", step.learning_rate),
        scalar("train/samples_per_second", "Positions trained on in a second.", step.samples_per_second),
    ];
    // No network is that sure.
    if step.ending_loss > 0.0 {
        out.push(scalar(
            "loss/ending",
            "Binary cross-entropy of a fact of the final position, in nats.",
            step.ending_loss,
        ));
    }
    if step.reply_loss > 0.0 {
        out.push(scalar("loss/reply", "Cross-entropy of the opponent's next move, in nats.", step.reply_loss));
    }
    out
}

fn self_play(summary: &SelfPlay) -> Vec<Scalar> {
    let mut out = vec![
        scalar("selfplay/games", "Games of the generation.", summary.played.games as f64),
        scalar("selfplay/positions", "Positions of these games.", summary.played.positions as f64),
        scalar(
            "selfplay/policy_positions",
            "Positions that train the policy (fully searched ones).",
            summary.played.policy_positions as f64,
        ),
        scalar("speed/games_per_second", "Self-play games in a second.", summary.games_per_second),
        scalar("speed/positions_per_second", "Self-play positions in a second.", summary.positions_per_second),
        scalar("speed/simulations_per_second", "Search simulations in a second.", summary.simulations_per_second),
        scalar("speed/evaluations_per_second", "Network evaluations in a second.", summary.evaluations_per_second),
        scalar("speed/batch_fill", "Mean share of a batch that is used.", summary.batch_fill),
    ];
    if let Some(rate) = summary.cache_hit_rate {
        out.push(scalar("speed/cache_hit_rate", "Share of evaluations that the cache answered.", rate));
    }
    out.extend([
        scalar(
            "speed/waiting_share",
            "Share of the time in which threads waited for evaluations or for each other.",
            summary.waiting_share,
        ),
        scalar("selfplay/mean_length", "Mean plies of a game.", summary.played.mean_length),
        scalar("selfplay/first_share", "Share of games that the first player won.", summary.played.first_share),
        scalar("selfplay/draw_share", "Share of drawn games.", summary.played.draw_share),
        scalar("selfplay/second_share", "Share of games that the second player won.", summary.played.second_share),
        scalar("selfplay/capped_share", "Share of games that ended at the ply limit.", summary.played.capped_share),
        scalar(
            "selfplay/repetition_share",
            "Share of games that ended by repetition.",
            summary.played.repetition_share,
        ),
        scalar("selfplay/distinct_share", "Share of games that differ from all others.", summary.played.distinct_share),
    ]);
    if let Some(resignations) = &summary.resignations {
        let share = resignations.resigned as f64 / summary.played.games.max(1) as f64;
        out.push(scalar("selfplay/resigned_share", "Share of games in which a player gave up.", share));
        if let Some(wrong) = resignations.wrong_share() {
            out.push(scalar(
                "selfplay/wrong_resign_share",
                "Share of the games played on to measure it in which giving up would have been wrong.",
                wrong,
            ));
        }
    }
    out
}

fn replay(replay: &Replay) -> Vec<Scalar> {
    vec![
        scalar("replay/positions", "Positions in the replay window.", replay.positions as f64),
        scalar("replay/bytes", "Size of the replay window in memory.", replay.bytes as f64),
        scalar("replay/age", "Generations between the oldest games of the window and now.", f64::from(replay.age)),
    ]
}

fn gate(gate: &Gate) -> Vec<Scalar> {
    vec![
        scalar("gate/wins", "Games that the candidate won.", gate.wins as f64),
        scalar("gate/draws", "Drawn games of the gate.", gate.draws as f64),
        scalar("gate/losses", "Games that the candidate lost.", gate.losses as f64),
        scalar("gate/score", "Score of the candidate against the best, draws count one half.", gate.score),
        scalar("gate/elo", "Elo of the candidate above the best.", gate.elo),
        scalar("gate/elo_low", "Lower end of the 95 % interval of that difference.", gate.elo_interval.0),
        scalar("gate/elo_high", "Upper end of the 95 % interval of that difference.", gate.elo_interval.1),
        scalar("gate/llr", "Log-likelihood ratio of the sequential test.", gate.llr),
        scalar("gate/distinct_games", "Games of the gate that differ from all others.", gate.distinct_games as f64),
        scalar(
            "gate/accepted",
            "1 when the candidate became the new best, else 0.",
            f64::from(u8::from(gate.verdict == Verdict::Accepted)),
        ),
    ]
}

fn elo(elo: &Elo) -> Vec<Scalar> {
    vec![
        scalar("elo/elo", "Strength on the run's own scale; 0 is a player that never changes.", elo.elo),
        scalar("elo/low", "Lower end of the 95 % interval.", elo.interval.0),
        scalar("elo/high", "Upper end of the 95 % interval.", elo.interval.1),
    ]
}
