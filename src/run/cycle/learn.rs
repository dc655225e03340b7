//! The learn stage: the network is trained on the window, and what is not finite stays out.

use std::cell::{Cell, RefCell};
use std::time::Instant;

use super::{Cycle, RunError};
use crate::data::Sampler;
use crate::game::Game;
use crate::net::{Weights, torch_device};
use crate::run::dir::DirError;
use crate::run::event::{Event, Histogram, Phase};
use crate::run::learn::{LearnError, Lesson, Rejected};
use crate::run::pointer::{Which, file_digest};
use crate::run::state::{RunState, Stage, TrainerFile};
use crate::train::{BatchView, NonFiniteAction, NonFiniteParams, Trainer};
use crate::util::publish::PublishError;
use crate::util::rng::{Purpose, Stream};

/// Rejected batches of a generation that are kept.
const KEPT: u64 = 16;

impl<G: Game> Cycle<'_, G> {
    /// The trainer, as the last saved state left it; that of a new network where `grows`.
    pub(super) fn open_trainer(&self, grows: bool) -> Result<Trainer, RunError> {
        let generation = self.state.generation;
        // Before its first step a generation has the trainer of the one before.
        let begun =
            grows || self.state.stage == Stage::Gate || matches!(self.state.stage, Stage::Learn { done: 1.., .. });
        let trained = if begun { generation } else { generation - 1 };
        let spec = self.config.training.spec(&self.game, self.config.network_of(trained).clone());
        let purpose = if grows { &[u64::from(generation)][..] } else { &[] };
        // Of new networks, and of auxiliary heads that are new, nothing is saved anywhere.
        let mut start = Weights::init(&spec, &mut Stream::keyed(self.config.seed, Purpose::Weights, purpose));
        if self.state.trainer.is_none() && !grows {
            start.0.extend(self.beginning()?.0);
        }
        let device = torch_device(self.resolved.device);
        let threads = self.config.training_threads();
        let mut trainer = Trainer::new(&spec, &start, self.config.training.clone(), device, threads)?;
        if grows {
            trainer.begin_at(self.state.step);
        } else if let Some(TrainerFile { name, .. }) = &self.state.trainer {
            trainer.load_state(&self.dir.state_file(name))?;
        }
        trainer.set_rate_factor(self.state.rate_factor);
        Ok(trainer)
    }

    pub(super) fn learn(&mut self, first: u64, total: u64) -> Result<(), RunError> {
        let generation = self.state.generation;
        let began = Instant::now();
        let grows = first == 0 && self.config.growth_at(generation).is_some();
        let mut trainer = match self.trainer.take() {
            Some(trainer) if !grows => trainer,
            _ => self.open_trainer(grows)?,
        };
        if grows {
            self.tell(&Event::Notice(format!(
                "generation {generation} trains a new network: {}",
                self.spec(generation)
            )))?;
            // Whoever plays with it next finds out anew how.
            self.pool = None;
        }
        self.tell(&Event::PhaseStarted { phase: Phase::Learn, generation, done: first, total })?;
        let sampler = Sampler::new(self.game.clone(), self.config.samples.clone());
        let batch_size = self.config.training.batch_size;
        let lesson = Lesson {
            game: &self.game,
            sampler: &sampler,
            window: &self.window,
            seed: self.config.seed,
            generation,
            batch_size,
        };
        let failure = RefCell::new(None);
        let note = |result: Result<(), RunError>| {
            if let Err(error) = result {
                failure.borrow_mut().get_or_insert(error);
            }
        };
        let (rejected, last) = (Cell::new(self.state.rejected), RefCell::new(String::new()));
        let steps_before = trainer.step_count();
        let taught = lesson.teach(
            &mut trainer,
            first..total,
            &|| self.stop.is_set() || failure.borrow().is_some(),
            &mut |done, event| {
                let text = event.map_or_else(String::new, |e| {
                    format!(
                        "policy {:.3}, value {:.3}, {:.0} samples/s",
                        e.policy_loss, e.value_loss, e.samples_per_second
                    )
                });
                let told = event.map_or(Ok(()), |event| self.tell(&Event::TrainStep(event)));
                let progress = Event::Progress { phase: Phase::Learn, done, note: text };
                note(told.and_then(|()| self.tell(&progress)).map_err(RunError::from));
            },
            &mut |batch| {
                rejected.set(rejected.get() + 1);
                last.replace(batch.term.clone());
                note(self.reject(&batch, rejected.get()));
                rejected.get() <= self.config.training.non_finite.skip
            },
        )?;
        if let Some(error) = failure.into_inner() {
            return Err(error);
        }
        if taught.done == 0 {
            // Nothing has been learned, and there is nothing to be saved: the trainer is as it was.
            self.trainer = (!grows).then_some(trainer);
            return Ok(());
        }
        let reason = if taught.broken_off {
            let batches = if rejected.get() == 1 { "batch was" } else { "batches were" };
            Some(format!("{} {batches} not finite (the last one: {})", rejected.get(), last.into_inner()))
        } else {
            let mut batch = lesson.batch(trainer.spec());
            lesson.fill(total, &mut batch).map_err(LearnError::from)?;
            trainer.not_finite(&batch)?.map(|what| format!("the network is not finite ({what})"))
        };
        if let Some(reason) = reason {
            return self.roll_back(reason, total);
        }
        let applied = trainer.step_count() - steps_before;
        self.state.step += applied;
        self.state.samples += applied * batch_size as u64;
        self.state.rejected = rejected.get();
        // Steps alone are no name: in two generations they may be the same, but not the trainer.
        let name = format!("step-{:09}-gen-{generation:06}.state", self.state.step);
        let file = self.dir.state_file(&name);
        trainer.save_state(&file)?;
        self.state.trainer = Some(TrainerFile { name, digest: file_digest(&file)? });
        if taught.done < total {
            self.state.stage = Stage::Learn { done: taught.done, total };
        } else {
            for (tag, values) in trainer.histograms()? {
                if let Some(histogram) = Histogram::of(generation, tag, &values) {
                    self.tell(&Event::Histogram(histogram))?;
                }
            }
            self.publish_checkpoint(generation, trainer.play_weights()?, None)?;
            self.point(Which::Latest, generation)?;
            let seconds = began.elapsed().as_secs_f64();
            self.tell(&Event::PhaseFinished { phase: Phase::Learn, generation, seconds })?;
            self.state.stage = Stage::Gate;
            self.state.rejected = 0;
        }
        self.save()?;
        self.forget_old_states()?;
        self.trainer = Some(trainer);
        Ok(())
    }

    /// Tells of the `count`th batch that is left out in this generation, and keeps the first ones for inspection.
    fn reject(&self, rejected: &Rejected<'_>, count: u64) -> Result<(), RunError> {
        let generation = self.state.generation;
        let path = self.dir.rejected(generation, rejected.step);
        let file = path.strip_prefix(self.dir.root()).unwrap_or(&path).display().to_string();
        if count <= KEPT {
            let folder = self.dir.root().join("rejected");
            let failed = |source| DirError::from(PublishError::writing(&folder, "create", source));
            std::fs::create_dir_all(&folder).map_err(failed)?;
            let about = format!("generation {generation}, step {}: the {} is not finite", rejected.step, rejected.term);
            BatchView::from(rejected.batch).save(&path, &about).map_err(DirError::from)?;
        }
        let file = (count <= KEPT).then_some(file);
        let (step, term) = (rejected.steps_done, rejected.term.clone());
        let event = Event::BatchRejected { generation, step, term, count, file };
        Ok(self.tell(&event)?)
    }

    /// Returns to where the training of this generation began, or ends the run, as the config says.
    fn roll_back(&mut self, reason: String, total: u64) -> Result<(), RunError> {
        let NonFiniteParams { then, rollbacks, rate_factor, .. } = self.config.training.non_finite;
        let generation = self.state.generation;
        let remedy = match then {
            NonFiniteAction::Stop => Some("training.non_finite.then asks to stop"),
            NonFiniteAction::Rollback if self.state.rollbacks >= rollbacks => Some(
                "the training has returned to the beginning of a generation as often as training.non_finite.rollbacks allows",
            ),
            NonFiniteAction::Rollback => None,
        };
        if let Some(remedy) = remedy {
            let folder = self.dir.root().join("rejected").display().to_string();
            return Err(RunError::NotFinite { generation, reason, remedy, folder });
        }
        let end = self.dir.end_file(generation - 1);
        let end = RunState::read(&end)?.ok_or(RunError::Lost { file: end })?;
        self.state.trainer = end.trainer;
        self.state.step = end.step;
        self.state.samples = end.samples;
        self.state.rejected = 0;
        self.state.rollbacks += 1;
        self.state.rate_factor *= rate_factor;
        self.state.stage = Stage::Learn { done: 0, total };
        let (step, rate_factor) = (self.state.step, self.state.rate_factor);
        self.tell(&Event::RolledBack { generation, step, reason, rate_factor })?;
        self.save()
    }
}
