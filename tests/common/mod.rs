//! What the tests of the program share: starting it, waiting for what it says, small runs.

#![allow(dead_code, reason = "each test file uses a part of it")]

pub mod networks;
pub mod runs;

use std::io::Read;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use serde_json::Value as Json;

/// The program under test.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_sparring");

/// No single call of the program in the fast tests takes nearly as long, not even on a busy machine.
const LIMIT: Duration = Duration::from_secs(300);

/// How much time a limit is where more processes want to work than the machine has cores.
pub fn busy(limit: Duration) -> Duration {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = load.split(' ').next().and_then(|load| load.parse::<f64>().ok()).unwrap_or(1.0);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    limit.mul_f64((load / cores as f64).max(1.0))
}

/// What a process came to.
#[derive(Debug)]
pub struct Done {
    /// The exit code; of a process that died by a signal its negative number.
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl Done {
    /// Asserts the exit code, and that nothing panicked.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.out, self.err);
        assert!(!self.err.contains("panicked"), "{}", self.err);
        self
    }

    /// Asserts that it failed with `code`, saying all of `parts` on stderr and nothing on stdout.
    #[track_caller]
    pub fn complains(self, code: i32, parts: &[&str]) -> Self {
        let done = self.expect(code);
        assert_eq!(done.out, "", "a failure leaves stdout empty");
        for part in parts {
            assert!(done.err.contains(part), "{part:?} is missing in:\n{}", done.err);
        }
        done
    }

    /// Stdout as the JSON document that it must be.
    #[track_caller]
    pub fn json(&self) -> Json {
        serde_json::from_str(&self.out).unwrap_or_else(|error| panic!("{error}: {}", self.out))
    }
}

/// A running process. Dropped, it is killed.
pub struct Process {
    child: Child,
    out: Capture,
    err: Capture,
}

/// What comes out of a pipe, collected by a thread so that the pipe never fills up.
struct Capture {
    bytes: Arc<Mutex<Vec<u8>>>,
    thread: Option<JoinHandle<()>>,
}

impl Capture {
    fn of(mut pipe: impl Read + Send + 'static) -> Self {
        let bytes = Arc::new(Mutex::new(Vec::new()));
        let store = bytes.clone();
        let thread = std::thread::spawn(move || {
            let mut block = [0; 4096];
            while let Ok(count @ 1..) = pipe.read(&mut block) {
                store.lock().unwrap().extend_from_slice(&block[..count]);
            }
        });
        Self { bytes, thread: Some(thread) }
    }

    fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes.lock().unwrap()).into_owned()
    }

    fn all(&mut self) -> String {
        self.thread.take().map(JoinHandle::join);
        self.text()
    }
}

impl Process {
    /// Starts `command` with both outputs captured and stdin as it is set there.
    pub fn start(command: &mut Command) -> Self {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the program starts");
        let (out, err) = (child.stdout.take().expect("piped"), child.stderr.take().expect("piped"));
        Self { child, out: Capture::of(out), err: Capture::of(err) }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// What it has said on stderr so far.
    pub fn said(&self) -> String {
        self.err.text()
    }

    /// Looks every `pause` until `ready` says so of what stderr holds, or the process has ended.
    #[track_caller]
    pub fn wait_until(&mut self, pause: Duration, mut ready: impl FnMut(&str) -> bool) {
        let began = Instant::now();
        loop {
            let ended = self.has_ended();
            if ready(&self.said()) || ended {
                return;
            }
            assert!(began.elapsed() < LIMIT, "nothing happens:\n{}", self.said());
            std::thread::sleep(pause);
        }
    }

    /// Waits until stderr contains one of `texts`.
    #[track_caller]
    pub fn wait_for_any(&mut self, texts: &[&str]) {
        let contains = |said: &str| texts.iter().any(|text| said.contains(text));
        self.wait_until(Duration::from_millis(2), contains);
        assert!(contains(&self.said()), "{texts:?} did not come:\n{}", self.said());
    }

    /// Waits until stderr contains `text`.
    #[track_caller]
    pub fn wait_for(&mut self, text: &str) {
        self.wait_for_any(&[text]);
    }

    /// Sends a signal by its name (`INT`, `KILL`).
    pub fn signal(&self, name: &str) {
        let sent = Command::new("kill").arg(format!("-{name}")).arg(self.id().to_string()).status();
        assert!(sent.unwrap().success(), "kill -{name}");
    }

    /// Sends SIGKILL, sooner than [`signal`](Self::signal) can.
    pub fn kill(&mut self) {
        self.child.kill().unwrap();
    }

    /// Waits for the end.
    #[track_caller]
    pub fn finish(mut self) -> Done {
        self.wait_until(Duration::from_millis(2), |_| false);
        let status = self.child.try_wait().unwrap().expect("it has ended");
        let code = status.code().unwrap_or_else(|| -status.signal().expect("no code means a signal"));
        Done { code, out: self.out.all(), err: self.err.all() }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // A process that has ended is already waited for; then both do nothing.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program with these arguments.
pub fn sparring<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).stdin(Stdio::null());
    command
}

/// Runs the program to its end.
#[track_caller]
pub fn run<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Done {
    Process::start(&mut sparring(arguments)).finish()
}

/// Arguments from words, for texts without spaces.
pub fn words(text: &str) -> Vec<&str> {
    text.split_whitespace().collect()
}

/// `sparring train CONFIG --run RUN` with overrides.
pub fn train(config: &Path, run: &Path, sets: &[&str]) -> Command {
    let mut command = sparring(["train"]);
    command.arg(config).arg("--run").arg(run);
    for set in sets {
        command.args(["--set", set]);
    }
    command
}

/// A run of `game` with a tiny network that has learned next to nothing, in `scratch`, which need not be there; one generation
/// unless `sets` say otherwise.
#[track_caller]
pub fn small_run(scratch: &Path, game: &str, sets: &[&str]) -> String {
    std::fs::create_dir_all(scratch).unwrap();
    let config = scratch.join(format!("{game}.json"));
    std::fs::write(&config, format!("{{\"game\": \"{game}\"}}")).unwrap();
    let folder = scratch.join(game);
    let small = [
        "network.blocks=1",
        "network.channels=8",
        "selfplay.games=2",
        "selfplay.simulations=2",
        "replay.reuse=0.01",
        "training.batch_size=8",
        "gate={\"mode\": \"off\", \"anchor_games\": 0}",
    ];
    let is_longer = sets.iter().any(|set| set.starts_with("stop."));
    let once: &[&str] = if is_longer { &[] } else { &["stop.iterations=1"] };
    Process::start(&mut train(&config, &folder, &[&small, once, sets].concat())).finish().expect(0);
    folder.display().to_string()
}
