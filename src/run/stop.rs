//! When a run ends: by its config, or because a person or the system asks.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::time::{Duration, Instant};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use signal_hook::consts::signal::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::{Handle, Signals as SignalStream};

use crate::play::kill_engines;

/// When the run is done: as soon as any of these is reached. With none it goes on until it is interrupted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct StopParams {
    /// Finished generations (turns of the cycle of self-play, training and gate).
    #[schemars(range(min = 1, max = 1_000_000_000), extend("x-unit" = "generations"))]
    pub iterations: Option<u32>,
    /// Self-play games played.
    #[schemars(range(min = 1), extend("x-unit" = "games"))]
    pub games: Option<u64>,
    /// Positions of self-play games played.
    #[schemars(range(min = 1), extend("x-unit" = "positions"))]
    pub positions: Option<u64>,
    /// Hours of work, all sessions of the run together.
    #[schemars(extend("exclusiveMinimum" = 0.0, "x-unit" = "hours"))]
    pub hours: Option<f64>,
    /// Hours of processor time, all threads and sessions of the run together: what `hours` are on one core that does nothing else.
    #[schemars(extend("exclusiveMinimum" = 0.0, "x-unit" = "hours"))]
    pub cpu_hours: Option<f64>,
    /// Elo of the best network on the run's own scale, which is anchored on a player that never changes.
    #[schemars(extend("x-unit" = "Elo"))]
    pub elo: Option<f64>,
}

/// How far a run has come, all its sessions together.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Done {
    /// Finished generations.
    pub iterations: u32,
    /// Self-play games.
    pub games: u64,
    /// Positions of these games.
    pub positions: u64,
    /// Hours of work.
    pub hours: f64,
    /// Hours of processor time.
    pub cpu_hours: f64,
    /// Elo of the best network, once there is an estimate.
    pub elo: Option<f64>,
}

impl StopParams {
    /// The goal that is reached, in words; `None` while the run goes on.
    pub fn reached(&self, done: &Done) -> Option<String> {
        if let Some(goal) = self.iterations.filter(|&goal| done.iterations >= goal) {
            let are = if goal == 1 { "generation is" } else { "generations are" };
            return Some(format!("{goal} {are} done (stop.iterations)"));
        }
        if let Some(goal) = self.games.filter(|&goal| done.games >= goal) {
            return Some(format!("{} games are played, {goal} were asked for (stop.games)", done.games));
        }
        if let Some(goal) = self.positions.filter(|&goal| done.positions >= goal) {
            return Some(format!("{} positions are played, {goal} were asked for (stop.positions)", done.positions));
        }
        if let Some(goal) = self.hours.filter(|&goal| done.hours >= goal) {
            return Some(format!("{goal} hours are over (stop.hours)"));
        }
        if let Some(goal) = self.cpu_hours.filter(|&goal| done.cpu_hours >= goal) {
            return Some(format!("{goal} hours of processor time are over (stop.cpu_hours)"));
        }
        match (self.elo, done.elo) {
            (Some(goal), Some(elo)) if elo >= goal => {
                Some(format!("the Elo is {elo:.0}, {goal} was asked for (stop.elo)"))
            }
            _ => None,
        }
    }
}

/// The question "shall I stop?" that every phase of a run asks often. Clones share one answer.
#[derive(Clone, Debug, Default)]
pub struct StopFlag(Arc<AtomicI32>);

impl StopFlag {
    /// A flag that nothing has set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether to save everything and stop. Costs no more than reading a number.
    #[inline]
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }

    /// Asks to stop, as SIGINT does.
    pub fn set(&self) {
        self.set_to(SIGINT);
    }

    fn set_to(&self, signal: i32) {
        self.0.store(signal, Ordering::Relaxed);
    }

    /// What asked to stop, in words.
    pub fn cause(&self) -> Option<&'static str> {
        match self.0.load(Ordering::Relaxed) {
            0 => None,
            SIGTERM => Some("terminated (SIGTERM)"),
            SIGHUP => Some("the terminal was closed (SIGHUP)"),
            _ => Some("interrupted (SIGINT)"),
        }
    }
}

/// A second signal sooner than this after the first is the same wish: `timeout` and some shells send one to
/// the process and another to its group.
const ECHO: Duration = Duration::from_millis(500);

/// The exit code of an interrupted run.
pub const INTERRUPTED: i32 = 130;

/// Listens to SIGINT (Ctrl-C), SIGTERM and SIGHUP until dropped.
///
/// The first one sets the [`StopFlag`]; a second SIGINT or SIGTERM ends the process at once with
/// exit code 130. SIGHUP is left ignored where it is (`nohup`).
#[derive(Debug)]
pub struct Signals {
    handle: Handle,
    listener: Option<std::thread::JoinHandle<()>>,
}

impl Signals {
    /// Begins to listen.
    ///
    /// # Errors
    /// When the system refuses the handlers or the thread.
    pub fn listen(flag: &StopFlag) -> std::io::Result<Self> {
        let mut stream = stream()?;
        let handle = stream.handle();
        let flag = flag.clone();
        let listener = std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
            let mut first: Option<Instant> = None;
            for signal in stream.forever() {
                match first {
                    None => {
                        first = Some(Instant::now());
                        flag.set_to(signal);
                    }
                    Some(at) if signal != SIGHUP && at.elapsed() >= ECHO => {
                        kill_engines();
                        signal_hook::low_level::exit(INTERRUPTED)
                    }
                    Some(_) => {}
                }
            }
        })?;
        Ok(Self { handle, listener: Some(listener) })
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        self.handle.close();
        if let Some(listener) = self.listener.take() {
            // The listener does nothing that panics; if it did, there would be nothing left to stop.
            let _ = listener.join();
        }
    }
}

/// What asks a process to end: SIGINT, SIGTERM, and SIGHUP where it is not ignored (`nohup`).
fn stream() -> std::io::Result<SignalStream> {
    let hangup = (!ignored(SIGHUP)).then_some(SIGHUP);
    SignalStream::new([SIGINT, SIGTERM].into_iter().chain(hangup))
}

/// Ends the process at SIGINT, SIGTERM or SIGHUP, with exit code 130, and its engines with it: for what has nothing to save. With a
/// flag, a SIGINT that finds it unset sets it and no more; who answers it takes it back.
///
/// # Errors
/// When the system refuses the handlers or the thread.
pub fn end_at_signals(asked: Option<Arc<AtomicBool>>) -> std::io::Result<()> {
    let mut stream = stream()?;
    std::thread::Builder::new().name("signals".to_owned()).spawn(move || {
        for signal in stream.forever() {
            if signal == SIGINT
                && let Some(asked) = &asked
                && !asked.swap(true, Ordering::Relaxed)
            {
                continue;
            }
            kill_engines();
            signal_hook::low_level::exit(INTERRUPTED);
        }
    })?;
    Ok(())
}

/// Lets a write beyond the size limit of files (`ulimit -f`) fail like any other, which is told, where the signal that comes
/// with it would end the process without a word.
pub fn outlive_file_limits() {
    // Nobody asks for the flag. Without it everything works as before, only less politely.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Whether this process was started with `signal` ignored. Known on Linux only; elsewhere no.
fn ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn goals_are_reached_one_by_one() {
        let none = StopParams::default();
        let far = Done {
            iterations: u32::MAX,
            games: u64::MAX,
            positions: u64::MAX,
            hours: 1e9,
            cpu_hours: 1e9,
            elo: Some(1e9),
        };
        assert_eq!(none.reached(&far), None);
        let all = StopParams {
            iterations: Some(5),
            games: Some(100),
            positions: Some(1000),
            hours: Some(0.5),
            cpu_hours: Some(0.75),
            elo: Some(0.0),
        };
        let near = Done { iterations: 4, games: 99, positions: 999, hours: 0.49, cpu_hours: 0.74, elo: Some(-1.0) };
        assert_eq!(all.reached(&near), None);
        assert_eq!(all.reached(&Done { elo: None, ..near }), None);
        let cases = [
            (Done { iterations: 5, ..near }, "stop.iterations"),
            (Done { games: 101, ..near }, "stop.games"),
            (Done { positions: 1000, ..near }, "stop.positions"),
            (Done { hours: 0.5, ..near }, "stop.hours"),
            (Done { cpu_hours: 0.75, ..near }, "stop.cpu_hours"),
            (Done { elo: Some(0.0), ..near }, "stop.elo"),
        ];
        for (done, key) in cases {
            assert!(all.reached(&done).unwrap().contains(key), "{key}");
        }
    }

    /// Set in the process that the tests below send signals to: "1", or "stubborn" when it is not to stop.
    const ROLE: &str = "SPARRING_TEST_WAIT";

    /// Not a test of its own: that process.
    #[test]
    fn waiting_process() {
        let Some(role) = std::env::var_os(ROLE) else { return };
        let flag = StopFlag::new();
        let signals = Signals::listen(&flag).unwrap();
        println!("ready");
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(20) {
            std::thread::sleep(Duration::from_millis(5));
            if let Some(cause) = flag.cause()
                && role != "stubborn"
            {
                println!("{cause}");
                drop(signals);
                std::process::exit(7);
            }
        }
    }

    /// Sends `signals` to a waiting process, `pause` apart; its exit code and output.
    fn send(signals: &[&str], stubborn: bool, prefix: &[&str], pause: Duration) -> (Option<i32>, String) {
        use std::io::{BufRead as _, BufReader, Read as _};
        let me = std::env::current_exe().unwrap();
        let mut words: Vec<String> = prefix.iter().map(|word| (*word).to_owned()).collect();
        words.push(me.display().to_string());
        let mut command = Command::new(&words[0]);
        command.args(&words[1..]).args(["--exact", "--nocapture", "run::stop::tests::waiting_process"]);
        command.env(ROLE, if stubborn { "stubborn" } else { "1" });
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut reader = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        while !line.contains("ready") {
            line.clear();
            assert!(reader.read_line(&mut line).unwrap() > 0, "the process ended too early");
        }
        for (index, signal) in signals.iter().enumerate() {
            if index > 0 {
                std::thread::sleep(pause);
            }
            let pid = child.id().to_string();
            assert!(Command::new("kill").args([&format!("-{signal}"), &pid]).status().unwrap().success());
        }
        let mut output = String::new();
        reader.read_to_string(&mut output).unwrap();
        (child.wait().unwrap().code(), output)
    }

    #[test]
    fn the_first_signal_asks_and_the_second_ends() {
        for (signal, cause) in [("INT", "SIGINT"), ("TERM", "SIGTERM"), ("HUP", "SIGHUP")] {
            let (code, output) = send(&[signal], false, &[], Duration::ZERO);
            assert_eq!(code, Some(7), "{signal}");
            assert!(output.contains(cause), "{output}");
        }
        let later = ECHO + Duration::from_millis(200);
        assert_eq!(send(&["TERM", "INT"], true, &[], later).0, Some(INTERRUPTED));
        // An echo is no second wish.
        let start = Instant::now();
        assert_eq!(send(&["INT", "INT", "HUP", "INT"], true, &[], Duration::from_millis(300)).0, Some(INTERRUPTED));
        assert!(start.elapsed() >= Duration::from_millis(900));
    }

    #[test]
    fn nohup_stays_in_force() {
        let (code, output) = send(&["HUP", "TERM"], false, &["nohup"], Duration::from_millis(300));
        assert_eq!(code, Some(7));
        assert!(output.contains("SIGTERM"), "{output}");
    }
}
