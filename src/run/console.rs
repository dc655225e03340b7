//! A run in the terminal: a live line for each phase, or plain lines where nobody looks at a terminal.
//!
//! Everything goes to stderr. A terminal that is gone is no reason to stop a run, so failures to write to it
//! are ignored.

use std::io::{IsTerminal as _, Write};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::event::{Event, Gate, Phase, SelfPlay, TrainStep, Verdict};
use super::observer::{ObserveError, Observer};
use crate::play::Resignations;

/// Time between two plain lines of progress.
const EVERY: Duration = Duration::from_secs(10);

/// Tells a person what happens.
pub struct Console {
    out: Out,
    /// The phases in work; two can overlap.
    phases: Vec<Running>,
    /// The newest training step, for the line at the end of training.
    last_step: Option<TrainStep>,
}

enum Out {
    /// Live lines.
    Live(MultiProgress),
    /// Plain lines, progress not more often than `every`.
    Plain { out: Box<dyn Write + Send>, every: Duration },
}

struct Running {
    phase: Phase,
    /// Units of work before this session.
    before: u64,
    total: u64,
    started: Instant,
    told: Instant,
    bar: Option<ProgressBar>,
}

impl Console {
    /// For stderr, live when it is a terminal.
    pub fn stderr() -> Self {
        let out = if std::io::stderr().is_terminal() {
            Out::Live(MultiProgress::with_draw_target(ProgressDrawTarget::stderr()))
        } else {
            Out::Plain { out: Box::new(std::io::stderr()), every: EVERY }
        };
        Self { out, phases: Vec::new(), last_step: None }
    }

    /// Plain lines into `out`, progress not more often than `every`.
    pub fn plain(out: impl Write + Send + 'static, every: Duration) -> Self {
        Self { out: Out::Plain { out: Box::new(out), every }, phases: Vec::new(), last_step: None }
    }

    fn line(&mut self, text: &str) {
        // See the head of this file for why failures are ignored.
        match &mut self.out {
            Out::Live(bars) => drop(bars.println(text)),
            Out::Plain { out, .. } => drop(writeln!(out, "{text}").and_then(|()| out.flush())),
        }
    }

    fn begin(&mut self, phase: Phase, generation: u32, done: u64, total: u64) {
        let bar = match &self.out {
            Out::Live(bars) => {
                let bar = bars.add(ProgressBar::new(total).with_position(done));
                let form = "{prefix} {wide_bar} {human_pos}/{human_len} {elapsed}, {eta} left {msg}";
                bar.set_style(ProgressStyle::with_template(form).expect("the template is a constant and well-formed"));
                bar.set_prefix(format!("generation {generation}: {}", phase.title()));
                bar.reset_eta();
                bar.tick();
                Some(bar)
            }
            Out::Plain { .. } => {
                let resumed = if done > 0 { format!(", {} done before", group(done)) } else { String::new() };
                self.line(&format!(
                    "generation {generation}: {}, {} {}{resumed}",
                    phase.title(),
                    group(total),
                    phase.unit()
                ));
                None
            }
        };
        let now = Instant::now();
        self.phases.retain(|running| running.phase != phase);
        self.phases.push(Running { phase, before: done, total, started: now, told: now, bar });
    }

    fn progress(&mut self, phase: Phase, done: u64, note: &str) {
        let Some(running) = self.phases.iter_mut().find(|running| running.phase == phase) else { return };
        if let Some(bar) = &running.bar {
            bar.set_position(done);
            bar.set_message(note.to_owned());
            return;
        }
        let Out::Plain { every, .. } = self.out else { return };
        let now = Instant::now();
        if now - running.told < every {
            return;
        }
        running.told = now;
        let left = remaining(running, done, now).map_or_else(String::new, |left| format!(", {} left", time(left)));
        let note = if note.is_empty() { String::new() } else { format!(", {note}") };
        let text = format!("  {}/{} {}{left}{note}", group(done), group(running.total), phase.unit());
        self.line(&text);
    }

    fn finish(&mut self, phase: Phase, generation: u32, seconds: f64) {
        self.remove(phase);
        let took = time(Duration::try_from_secs_f64(seconds).unwrap_or_default());
        let mut text = format!("generation {generation}: {} done in {took}", phase.title());
        if phase == Phase::Learn
            && let Some(step) = self.last_step.take()
        {
            text += &format!(
                ", step {}: policy loss {:.3} (least {:.3}), value loss {:.3}, {} samples/s",
                group(step.step),
                step.policy_loss,
                step.target_entropy,
                step.value_loss,
                group(step.samples_per_second as u64)
            );
        }
        self.line(&text);
    }

    fn remove(&mut self, phase: Phase) {
        self.phases.retain(|running| {
            if let (true, Some(bar)) = (running.phase == phase, &running.bar) {
                bar.finish_and_clear();
            }
            running.phase != phase
        });
    }
}

impl Observer for Console {
    fn observe(&mut self, event: &Event) -> Result<(), ObserveError> {
        match event {
            Event::PhaseStarted { phase, generation, done, total } => self.begin(*phase, *generation, *done, *total),
            Event::Progress { phase, done, note } => self.progress(*phase, *done, note),
            Event::PhaseFinished { phase, generation, seconds } => self.finish(*phase, *generation, *seconds),
            Event::TrainStep(step) => self.last_step = Some(*step),
            Event::RunStarted { run, game, resumed, generation, step } => {
                let state = if *resumed {
                    format!("resumed in generation {generation} at step {}", group(*step))
                } else {
                    "new run".to_owned()
                };
                self.line(&format!("{run}: {game}, {state}"));
            }
            Event::SelfPlay(summary) => self.line(&self_play(summary)),
            Event::Replay(replay) => self.line(&format!(
                "  replay window: {} positions, {:.1} MB, of {}",
                group(replay.positions),
                replay.bytes as f64 / 1e6,
                match replay.age {
                    0 => "1 generation".to_owned(),
                    age => format!("{} generations", age + 1),
                }
            )),
            Event::Gate(gate) => self.line(&self::gate(gate)),
            Event::Elo(elo) => self.line(&format!(
                "  Elo of generation {}: {:.0} ({:.0} to {:.0})",
                elo.generation, elo.elo, elo.interval.0, elo.interval.1
            )),
            Event::GenerationFinished { generation, step, best, games, positions, hours, .. } => self.line(&format!(
                "generation {generation} finished: step {}, best is generation {best}, {} games, {} positions, {}",
                group(*step),
                group(*games),
                group(*positions),
                time(Duration::try_from_secs_f64(hours * 3600.0).unwrap_or_default())
            )),
            Event::Notice(text) => self.line(text),
            Event::Warning(text) => self.line(&format!("warning: {text}")),
            Event::BatchRejected { term, count, file, .. } => {
                let kept = file.as_ref().map_or_else(String::new, |file| format!(" and kept as {file}"));
                self.line(&format!(
                    "warning: the {term} is not finite; this batch is left out ({count} in this generation){kept}"
                ));
            }
            Event::RolledBack { generation, reason, rate_factor, .. } => self.line(&format!(
                "warning: {reason}; the training of generation {generation} begins again, with {rate_factor} of the \
                 learning rate"
            )),
            Event::RunStopped { reason, complete } => {
                for phase in Phase::ALL {
                    self.remove(phase);
                }
                let next = if *complete { "" } else { "; everything is saved, the same command goes on" };
                self.line(&format!("stopped: {reason}{next}"));
            }
            Event::RunFailed { .. } => {
                for phase in Phase::ALL {
                    self.remove(phase);
                }
            }
            Event::Histogram(_) | Event::SampleGame { .. } => {}
        }
        Ok(())
    }
}

/// The time that the rest of a phase takes at the pace of this session.
fn remaining(running: &Running, done: u64, now: Instant) -> Option<Duration> {
    let here = done.checked_sub(running.before).filter(|&here| here > 0)?;
    let left = running.total.saturating_sub(done);
    let seconds = (now - running.started).as_secs_f64() * left as f64 / here as f64;
    Duration::try_from_secs_f64(seconds).ok()
}

fn self_play(summary: &SelfPlay) -> String {
    let percent = |share: f64| format!("{:.0} %", share * 100.0);
    let mut text = format!(
        "  {} games, {} positions, {:.1} plies a game; first {}, draw {}, second {}; {} simulations/s, {} \
         evaluations/s, batch fill {}",
        group(summary.played.games),
        group(summary.played.positions),
        summary.played.mean_length,
        percent(summary.played.first_share),
        percent(summary.played.draw_share),
        percent(summary.played.second_share),
        group(summary.simulations_per_second as u64),
        group(summary.evaluations_per_second as u64),
        percent(summary.batch_fill),
    );
    for (share, what) in
        [(summary.played.capped_share, "cut off at the ply limit"), (summary.played.repetition_share, "repetition")]
    {
        if share > 0.0 {
            text += &format!(", {} {what}", percent(share));
        }
    }
    if let Some(Resignations { resigned, played_on, wrong }) = summary.resignations {
        text += &format!(", {} resigned", percent(resigned as f64 / summary.played.games.max(1) as f64));
        if played_on > 0 {
            text += &format!(" ({wrong} of {played_on} played on would have been wrong)");
        }
    }
    if summary.played.games > 1 && summary.played.distinct_share < 0.995 {
        text += &format!(", only {} distinct", percent(summary.played.distinct_share));
    }
    text
}

fn gate(gate: &Gate) -> String {
    let verdict = match gate.verdict {
        Verdict::Accepted => "accepted",
        Verdict::Rejected => "rejected",
        Verdict::Undecided => "undecided, the best stays",
    };
    format!(
        "  gate: {}-{}-{} (win-draw-loss), score {:.1} %, Elo {:+.0} ({:+.0} to {:+.0}), {} distinct games: {verdict}",
        gate.wins,
        gate.draws,
        gate.losses,
        gate.score * 100.0,
        gate.elo,
        gate.elo_interval.0,
        gate.elo_interval.1,
        gate.distinct_games
    )
}

/// A number with its thousands set apart: 1,234,567.
fn group(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// A time in the two units that matter: "12 s", "3 min 4 s", "2 h 5 min".
fn time(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::*;
    use crate::run::event::GamesSummary;

    /// What a console wrote.
    #[derive(Clone, Debug, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl Write for Page {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }
        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn told(every: Duration, events: &[Event]) -> Vec<String> {
        let page = Page::default();
        let mut console = Console::plain(page.clone(), every);
        events.iter().for_each(|event| console.observe(event).unwrap());
        let bytes = page.0.lock().unwrap().clone();
        String::from_utf8(bytes).unwrap().lines().map(str::to_owned).collect()
    }

    fn progress(done: u64) -> Event {
        Event::Progress { phase: Phase::Generate, done, note: "fast".into() }
    }

    #[test]
    fn a_generation_in_plain_lines() {
        let played = GamesSummary {
            games: 2000,
            positions: 80_000,
            mean_length: 40.0,
            first_share: 0.5,
            draw_share: 0.125,
            second_share: 0.375,
            capped_share: 0.01,
            distinct_share: 1.0,
            ..GamesSummary::default()
        };
        let lines = told(
            Duration::from_secs(60),
            &[
                Event::RunStarted {
                    run: "runs/a".into(),
                    game: "uttt".into(),
                    resumed: true,
                    generation: 3,
                    step: 1200,
                },
                Event::PhaseStarted { phase: Phase::Generate, generation: 3, done: 5, total: 2000 },
                progress(10),
                progress(20),
                Event::PhaseFinished { phase: Phase::Generate, generation: 3, seconds: 75.0 },
                Event::SelfPlay(SelfPlay { played, ..SelfPlay::default() }),
                Event::TrainStep(TrainStep {
                    step: 1300,
                    policy_loss: 1.5,
                    value_loss: 0.75,
                    target_entropy: 1.0,
                    ..TrainStep::default()
                }),
                Event::PhaseFinished { phase: Phase::Learn, generation: 3, seconds: 4.0 },
                Event::Gate(Gate {
                    generation: 3,
                    wins: 30,
                    draws: 4,
                    losses: 16,
                    score: 0.64,
                    elo: 100.0,
                    elo_interval: (2.0, 210.0),
                    llr: 2.9,
                    distinct_games: 50,
                    verdict: Verdict::Accepted,
                }),
                Event::Warning("few distinct games".into()),
                Event::RunStopped { reason: "interrupted (SIGINT)".into(), complete: false },
            ],
        );
        let expected = [
            "runs/a: uttt, resumed in generation 3 at step 1,200",
            "generation 3: self-play, 2,000 games, 5 done before",
            "generation 3: self-play done in 1 min 15 s",
            "  2,000 games, 80,000 positions, 40.0 plies a game; first 50 %, draw 12 %, second 38 %; 0 simulations/s, 0 evaluations/s, batch fill 0 %, 1 % cut off at the ply limit",
            "generation 3: training done in 4.0 s, step 1,300: policy loss 1.500 (least 1.000), value loss 0.750, 0 samples/s",
            "  gate: 30-4-16 (win-draw-loss), score 64.0 %, Elo +100 (+2 to +210), 50 distinct games: accepted",
            "warning: few distinct games",
            "stopped: interrupted (SIGINT); everything is saved, the same command goes on",
        ];
        assert_eq!(lines, expected);
    }

    #[test]
    fn progress_is_told_now_and_then_with_the_time_left() {
        let start = Event::PhaseStarted { phase: Phase::Generate, generation: 1, done: 0, total: 100 };
        let events: Vec<Event> = std::iter::once(start).chain((1..=50).map(progress)).collect();
        assert_eq!(told(Duration::from_secs(3600), &events).len(), 1);
        let lines = told(Duration::ZERO, &events);
        assert_eq!(lines.len(), 51);
        assert!(lines[50].starts_with("  50/100 games, 0.0 s left, fast"), "{}", lines[50]);
        // Progress of a phase that never began is nothing to stumble over.
        assert!(told(Duration::ZERO, &[progress(1)]).is_empty());
    }

    #[test]
    fn the_time_left_counts_this_session_only() {
        let started = Instant::now();
        let running = Running { phase: Phase::Learn, before: 50, total: 100, started, told: started, bar: None };
        let later = started + Duration::from_secs(10);
        assert_eq!(remaining(&running, 50, later), None);
        assert_eq!(remaining(&running, 60, later), Some(Duration::from_secs(40)));
        assert_eq!(remaining(&running, 100, later), Some(Duration::ZERO));
    }

    #[test]
    fn a_terminal_that_is_gone_does_not_matter() {
        struct Gone;
        impl Write for Gone {
            fn write(&mut self, _: &[u8]) -> std::io::Result<usize> {
                Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe))
            }
            fn flush(&mut self) -> std::io::Result<()> {
                Err(std::io::Error::from(std::io::ErrorKind::BrokenPipe))
            }
        }
        Console::plain(Gone, Duration::ZERO).observe(&Event::Notice("hello".into())).unwrap();
    }

    /// A terminal that keeps everything ever written to it; cursor movements are dropped.
    impl indicatif::TermLike for Page {
        fn width(&self) -> u16 {
            120
        }
        fn move_cursor_up(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_down(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_right(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn move_cursor_left(&self, _: usize) -> std::io::Result<()> {
            Ok(())
        }
        fn write_line(&self, text: &str) -> std::io::Result<()> {
            self.write_str(&format!("{text}\n"))
        }
        fn write_str(&self, text: &str) -> std::io::Result<()> {
            self.clone().write_all(text.as_bytes())
        }
        fn clear_line(&self) -> std::io::Result<()> {
            Ok(())
        }
        fn flush(&self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn live_lines_follow_the_phases() {
        let page = Page::default();
        let bars = MultiProgress::with_draw_target(ProgressDrawTarget::term_like(Box::new(page.clone())));
        let mut console = Console { out: Out::Live(bars), phases: Vec::new(), last_step: None };
        let mut tell = |event| console.observe(&event).unwrap();
        tell(Event::PhaseStarted { phase: Phase::Generate, generation: 2, done: 0, total: 100 });
        tell(Event::PhaseStarted { phase: Phase::Learn, generation: 1, done: 0, total: 1000 });
        tell(Event::Notice("a notice".into()));
        tell(Event::PhaseFinished { phase: Phase::Generate, generation: 2, seconds: 1.0 });
        tell(Event::RunStopped { reason: "done".into(), complete: true });
        let shown = String::from_utf8(page.0.lock().unwrap().clone()).unwrap();
        for text in ["generation 2: self-play", "generation 1: training", "0/1,000", "a notice", "stopped: done"] {
            assert!(shown.contains(text), "{text:?} is missing in {shown}");
        }
        assert!(console.phases.is_empty());
    }
}
