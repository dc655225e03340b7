//! The gate stage: the candidate meets the best network and the anchor.

use std::sync::{Arc, Mutex};
use std::time::Instant;

use super::{Cycle, RunError, tell};
use crate::eval::SymmetryMode;
use crate::game::Game;
use crate::play::{
    MatchReport, Player, PoolParams, PoolStats, Referee, SearchSeat, Seat, Teaching, Temperature, play_match,
};
use crate::run::engine::NetSource;
use crate::run::event::{self, Event, Phase};
use crate::run::gate::GateMode;
use crate::run::pointer::Which;
use crate::run::rating::{Meeting, Rated, elo};
use crate::run::report::gate_event;
use crate::run::state::Stage;
use crate::util::rng::{Purpose, Stream};
use crate::util::stats::Tally as _;

impl<G: Game> Cycle<'_, G> {
    fn gate_source(&self, generation: u32) -> Result<Arc<NetSource<G>>, RunError> {
        self.source(generation, self.config.selfplay.cache_megabytes / 4, SymmetryMode::None)
    }

    fn gate_player(&self, generation: u32, evaluators: Arc<NetSource<G>>) -> Player<G> {
        let seat = SearchSeat {
            evaluators,
            search: self.config.search.clone(),
            simulations: self.config.gate.simulations,
            time: None,
            temperature: Temperature::GREEDY,
            noise: None,
            gumbel_noise: false,
            fast: None,
            teaching: Teaching::default(),
        };
        Player::new(format!("generation {generation}"), Seat::Search(seat))
    }

    /// Plays the match of a phase; `None` when it was interrupted.
    fn contest(
        &self,
        phase: Phase,
        players: &[Player<G>; 2],
        games: u32,
        pool: PoolParams,
    ) -> Result<Option<MatchReport>, RunError> {
        let gate = &self.config.gate;
        let sprt = (phase == Phase::Gate).then(|| gate.sprt());
        let salt = if phase == Phase::Gate { 0 } else { 1 };
        let seed = Stream::keyed(self.config.seed, Purpose::Match, &[u64::from(self.state.generation), salt]).bits();
        let failure = Mutex::new(None);
        self.tell(&Event::PhaseStarted { phase, generation: self.state.generation, done: 0, total: u64::from(games) })?;
        let pool = PoolParams { slots: (games as usize / pool.threads).clamp(1, 64), ..pool };
        let params = gate.match_params(games, sprt, seed, pool);
        let (stop, observers) = (&self.stop, &self.observers);
        let referee = Referee {
            stop: &|| stop.is_set(),
            finished: &|_| {},
            progress: &|tallies| {
                let games = tallies[0].games();
                let note = format!("{} vs {}: {games}", players[0].name, players[1].name);
                let progress = Event::Progress { phase, done: games.total(), note };
                if let Err(error) = tell(observers, &progress) {
                    failure.lock().expect("nothing panics here").get_or_insert(error);
                }
            },
        };
        let report = play_match(&self.game, players, &params, Vec::new(), &PoolStats::default(), &referee)?;
        if let Some(error) = failure.into_inner().expect("nothing panics here") {
            return Err(error.into());
        }
        Ok((!report.interrupted).then_some(report))
    }

    /// Compares the candidate with the best network and with the anchor, as the config says, and makes it the best one
    /// unless it loses.
    pub(super) fn gate(&mut self) -> Result<(), RunError> {
        let (generation, best) = (self.state.generation, self.state.best);
        let gate = &self.config.gate;
        let mut meetings = Vec::new();
        // Told only when all matches are over: interrupted ones are played again, and must not be told twice.
        let mut events = Vec::new();
        let mut accepted = true;
        if gate.mode == GateMode::Sprt || gate.anchor_games > 0 {
            let source = self.gate_source(generation)?;
            let pool = self.pool(&source)?;
            let candidate = self.gate_player(generation, source);
            if gate.mode == GateMode::Sprt {
                let began = Instant::now();
                let players = [candidate.clone(), self.gate_player(best, self.gate_source(best)?)];
                let Some(report) = self.contest(Phase::Gate, &players, gate.games, pool)? else { return Ok(()) };
                accepted = gate.passes(&report);
                let games = report.tally().games();
                meetings.push(Meeting { a: Rated::Generation(generation), b: Rated::Generation(best), games });
                let llr = gate.sprt().llr(&report.tally().pairs);
                events.push(Event::Gate(gate_event(generation, &report, accepted, llr)));
                if report.distinct * 4 < report.games {
                    events.push(Event::Warning(format!(
                        "only {} of {} gate games were different: raise gate.opening_plies",
                        report.distinct, report.games
                    )));
                }
                events.push(finished(Phase::Gate, generation, began));
            }
            if accepted && gate.anchor_games > 0 {
                let began = Instant::now();
                let players = [candidate, Player::mcts(gate.anchor_simulations, 1.0)];
                let games = gate.anchor_games;
                let Some(report) = self.contest(Phase::Rating, &players, games, pool)? else { return Ok(()) };
                let games = report.tally().games();
                meetings.push(Meeting { a: Rated::Generation(generation), b: Rated::Anchor, games });
                events.push(finished(Phase::Rating, generation, began));
            }
        }
        for event in &events {
            self.tell(event)?;
        }
        self.state.meetings.extend(meetings);
        let rating = elo(&self.state.meetings, Rated::Generation(generation));
        if let Some(rating) = rating {
            let interval = (rating.low, rating.high);
            self.tell(&Event::Elo(event::Elo { generation, elo: rating.value, interval }))?;
            let weights = self.checkpoint(generation)?.weights;
            self.publish_checkpoint(generation, weights, Some(rating.value))?;
            self.point(Which::Latest, generation)?;
        }
        if accepted {
            self.state.best = generation;
            self.state.best_digest = self.point(Which::Best, generation)?;
        }
        self.tell(&Event::GenerationFinished {
            generation,
            step: self.state.step,
            best: self.state.best,
            games: self.state.games,
            positions: self.state.positions,
            hours: self.hours(),
            cpu_hours: self.cpu_hours(),
        })?;
        self.state.stage = Stage::Generate;
        self.state.generation += 1;
        self.save_end()
    }
}

fn finished(phase: Phase, generation: u32, began: Instant) -> Event {
    Event::PhaseFinished { phase, generation, seconds: began.elapsed().as_secs_f64() }
}
