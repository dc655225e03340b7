//! Players that are other programs: engines that speak UGI, the protocol of `sparring ugi`.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::seat::{Choice, Mover, Turn};
use crate::game::{Game, WdlPov};
use crate::util::rng::Stream;

/// Longer lines are no protocol.
const LONGEST_LINE: u64 = 1 << 16;
/// Lines of an engine that wait to be read. One that says more has to wait itself.
const MOST_LINES: usize = 64;
/// How long an engine may take to say that it is ready.
const START: Duration = Duration::from_secs(30);
/// What it may take beyond the time that it was given for a move.
const GRACE: Duration = Duration::from_secs(5);
/// How long it may search so many simulations.
const LONGEST_SEARCH: Duration = Duration::from_secs(600);
/// Between two looks at whether to stop waiting.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// How long it may take to end when asked to.
const END: Duration = Duration::from_secs(1);

/// How long an engine thinks about a move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// So many simulations (`go nodes N`).
    Nodes(u64),
    /// So much time (`go movetime MS`).
    Time(Duration),
    /// As it likes (`go`).
    Own,
}

impl Pace {
    fn command(self) -> String {
        match self {
            Pace::Nodes(nodes) => format!("go nodes {nodes}"),
            Pace::Time(time) => format!("go movetime {}", time.as_millis()),
            Pace::Own => "go".to_owned(),
        }
    }

    fn longest(self) -> Duration {
        match self {
            Pace::Time(time) => time + GRACE,
            Pace::Nodes(_) | Pace::Own => LONGEST_SEARCH,
        }
    }
}

/// A program that plays.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Engine {
    /// The program and its arguments; at least one word.
    pub words: Vec<String>,
    /// How long it thinks.
    pub pace: Pace,
}

impl Engine {
    /// Starts the program once and ends it, to know that it is there and speaks the protocol.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn check(&self) -> Result<(), String> {
        Process::start(self).map(drop)
    }

    /// A mover that starts the program when it is to move for the first time, and again after it has failed.
    pub fn mover(&self) -> EngineMover {
        EngineMover { engine: self.clone(), process: None }
    }
}

/// Plays by an [`Engine`]. The process ends with the mover.
#[derive(Debug)]
pub struct EngineMover {
    engine: Engine,
    process: Option<Process>,
}

impl<G: Game> Mover<G> for EngineMover {
    fn choose(&mut self, game: &G, turn: &Turn<'_, G>, _: Stream) -> Result<Choice, String> {
        let mut process = match self.process.take() {
            Some(running) => running,
            None => Process::start(&self.engine)?,
        };
        let mut position = format!("position fen {}", turn.start);
        if !turn.moves.is_empty() {
            position += " moves";
            turn.moves.iter().for_each(|&action| position += &format!(" {}", game.action_text(action)));
        }
        process.say(&position)?;
        // What it still has to say of an earlier search comes before this answer, and is passed over.
        process.say("isready")?;
        process.answer(START, "readyok", turn.stop)?;
        process.say(&self.engine.pace.command())?;
        let answer = process.answer(self.engine.pace.longest(), "bestmove", turn.stop)?;
        let action =
            game.parse_action(&answer).map_err(|error| format!("its answer \"bestmove {answer}\": {error}"))?;
        let value = process.opinion.map(|value| value.abs(game.to_move(turn.state)));
        // One that has failed is not asked again.
        self.process = Some(process);
        Ok(Choice { action, value })
    }
}

/// The engines that run, for [`kill_engines`].
static RUNNING: Mutex<Vec<Arc<Mutex<Child>>>> = Mutex::new(Vec::new());

/// Kills every engine at once: for a program that is about to end without tidying up.
pub fn kill_engines() {
    let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
    for child in running.iter() {
        kill(&mut child.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

/// Kills a process that [`Process::start`] has started, and those that it has started itself.
fn kill(child: &mut Child) {
    // Nothing better can be done when this fails.
    let _ = child.kill();
    #[cfg(unix)]
    if let Ok(id) = i32::try_from(child.id()) {
        // It leads a group of its own; there is none when all have ended.
        let _ = nix::sys::signal::killpg(nix::unistd::Pid::from_raw(id), nix::sys::signal::Signal::SIGKILL);
    }
}

/// A running engine.
#[derive(Debug)]
struct Process {
    child: Arc<Mutex<Child>>,
    /// Commands for it, written by a thread: one that does not read them must not keep anybody waiting.
    input: Option<SyncSender<String>>,
    /// Its lines, read by a thread that ends with them.
    lines: Receiver<Result<String, String>>,
    /// The last `wdl` that it told of since the last command.
    opinion: Option<WdlPov>,
}

/// The value behind `wdl` on an `info` line: win, draw and loss of the player to move in thousandths.
fn opinion(line: &str) -> Option<WdlPov> {
    let mut words = line.strip_prefix("info ")?.split_whitespace().skip_while(|&word| word != "wdl").skip(1);
    let mut share = || words.next()?.parse().ok().filter(|share: &f32| (0.0..=1000.0).contains(share));
    let [win, draw, loss] = [share()?, share()?, share()?];
    let sum = win + draw + loss;
    (sum > 0.0).then(|| WdlPov { win: win / sum, draw: draw / sum, loss: loss / sum })
}

impl Process {
    fn start(engine: &Engine) -> Result<Self, String> {
        let (program, arguments) = engine.words.split_first().ok_or("an engine needs a command")?;
        let mut command = Command::new(program);
        command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped());
        // Ctrl-C in the terminal is for the match, which then ends its engines.
        #[cfg(unix)]
        std::os::unix::process::CommandExt::process_group(&mut command, 0);
        let mut child = command.spawn().map_err(|error| format!("{program:?} cannot be started: {error}"))?;
        let (output, written) = (child.stdout.take(), child.stdin.take());
        let (told, lines) = sync_channel(MOST_LINES);
        let mut output = BufReader::new(output.expect("it was asked for"));
        std::thread::spawn(move || {
            let mut line = Vec::new();
            // The end of the output, and what is no protocol any more, end the conversation.
            while (&mut output).take(LONGEST_LINE).read_until(b'\n', &mut line).is_ok() && line.ends_with(b"\n") {
                if told.send(Ok(String::from_utf8_lossy(&line).trim_end().to_owned())).is_err() {
                    return;
                }
                line.clear();
            }
            if line.len() as u64 == LONGEST_LINE {
                let _ = told.send(Err(format!("its line is longer than {} kB", LONGEST_LINE >> 10)));
            }
        });
        let (input, commands) = sync_channel::<String>(MOST_LINES);
        std::thread::spawn(move || {
            let mut pipe = written.expect("it was asked for");
            for line in commands {
                if pipe.write_all(line.as_bytes()).and_then(|()| pipe.flush()).is_err() {
                    return;
                }
            }
        });
        let child = Arc::new(Mutex::new(child));
        RUNNING.lock().unwrap_or_else(PoisonError::into_inner).push(child.clone());
        let mut process = Self { child, input: Some(input), lines, opinion: None };
        process.say("ugi")?;
        process.answer(START, "ugiok", &|| false)?;
        process.say("isready")?;
        process.answer(START, "readyok", &|| false)?;
        Ok(process)
    }

    fn say(&mut self, line: &str) -> Result<(), String> {
        self.opinion = None;
        let input = self.input.as_ref().ok_or("it has ended")?;
        input.try_send(format!("{line}\n")).map_err(|error| match (error, self.ended_soon()) {
            (_, Some(status)) => format!("it has ended ({status})"),
            (TrySendError::Full(_), None) => "it does not read its commands".to_owned(),
            (TrySendError::Disconnected(_), None) => "it takes no commands any more".to_owned(),
        })
    }

    fn child(&self) -> MutexGuard<'_, Child> {
        self.child.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// How the process has ended, if it does within a second.
    fn ended_soon(&mut self) -> Option<ExitStatus> {
        let until = Instant::now() + END;
        while Instant::now() < until {
            let status = self.child().try_wait();
            match status {
                Ok(None) => std::thread::sleep(Duration::from_millis(5)),
                ended => return ended.ok().flatten(),
            }
        }
        None
    }

    /// What follows `word` on the first line that begins with it.
    fn answer(&mut self, longest: Duration, word: &str, stop: &dyn Fn() -> bool) -> Result<String, String> {
        let until = Instant::now() + longest;
        loop {
            // Looked at for each line: one that says much has no more time than one that says nothing.
            let left = until.saturating_duration_since(Instant::now());
            if stop() {
                return Err("it was stopped".to_owned());
            }
            if left.is_zero() {
                return Err(format!("it did not answer \"{word}\" within {:.1} s", longest.as_secs_f64()));
            }
            let line = match self.lines.recv_timeout(left.min(LOOK_EVERY)) {
                Ok(line) => line?,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => {
                    let how = self.ended_soon().map_or("it closed its output".to_owned(), |status| status.to_string());
                    return Err(format!("it ended ({how}) before it answered \"{word}\""));
                }
            };
            if let Some(error) = line.strip_prefix("info string error") {
                return Err(format!("it refused: {}", error.trim()));
            }
            self.opinion = opinion(&line).or(self.opinion);
            let mut words = line.split_whitespace();
            if words.next() == Some(word) {
                return Ok(words.next().unwrap_or_default().to_owned());
            }
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(input) = self.input.take() {
            let _ = input.try_send("quit\n".to_owned());
        }
        let ended = self.ended_soon().is_some();
        let mut child = self.child();
        // Also where it has ended itself: it may have started others.
        kill(&mut child);
        if !ended {
            let _ = child.wait();
        }
        drop(child);
        let mut running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|child| !Arc::ptr_eq(child, &self.child));
    }
}

#[cfg(test)]
#[cfg(unix)]
mod tests {
    use super::*;
    use crate::game::WdlAbs;
    use crate::games::tictactoe::TicTacToe;

    /// An engine that is a shell script.
    fn engine(script: &str) -> Engine {
        let words = ["sh", "-c", script].map(str::to_owned).to_vec();
        Engine { words, pace: Pace::Time(Duration::from_millis(10)) }
    }

    /// Greets, then does `search` when asked for a move.
    fn greeting(search: &str) -> String {
        format!(
            "while read line; do case $line in ugi) echo ugiok;; isready) echo readyok;; go*) {search};; quit) exit;; \
             esac; done"
        )
    }

    fn chosen(engine: &Engine) -> Result<Choice, String> {
        let start = TicTacToe.startpos();
        let text = TicTacToe.state_text(&start);
        let mut mover = engine.mover();
        mover.choose(&TicTacToe, &Turn { start: &text, moves: &[], state: &start, stop: &|| false }, Stream::test(1))
    }

    #[test]
    fn an_engine_is_asked_and_answers() {
        let good = engine(&greeting("echo info depth 1; echo bestmove b2"));
        good.check().unwrap();
        let action = TicTacToe.parse_action("b2").unwrap();
        assert_eq!(chosen(&good), Ok(action.into()));
        let judging = engine(&greeting("echo info wdl 1 2; echo info wdl 500 250 250 pv b2; echo bestmove b2"));
        let value = Some(WdlAbs { first: 0.5, draw: 0.25, second: 0.25 });
        assert_eq!(chosen(&judging), Ok(Choice { action, value }));
    }

    #[test]
    fn every_way_to_fail_is_told() {
        let none = Engine { words: vec!["/no/such/engine".to_owned()], pace: Pace::Own };
        for (engine, part) in [
            (none, "cannot be started"),
            (engine("exit 3"), "exit status: 3"),
            (engine(&greeting("exit")), "before it answered \"bestmove\""),
            (engine(&greeting("echo bestmove z9")), "bestmove z9"),
            (engine(&greeting("echo bestmove")), "expected"),
            (engine("yes | tr -d '\\n'"), "longer than"),
            (engine(&greeting("echo info string error no")), "it refused: no"),
        ] {
            let told = chosen(&engine).unwrap_err();
            assert!(told.contains(part), "{part}: {told}");
        }
    }

    #[test]
    fn answers_to_earlier_searches_are_passed_over_and_floods_wait() {
        // It answers each search twice, and says much in between.
        let late = "echo bestmove b2; for i in $(seq 1 20000); do echo info string $i; done; echo bestmove a1";
        let late = engine(&greeting(late));
        let start = TicTacToe.startpos();
        let text = TicTacToe.state_text(&start);
        let mut mover = late.mover();
        let expected = TicTacToe.parse_action("b2").unwrap();
        for _ in 0..3 {
            let turn = Turn { start: &text, moves: &[], state: &start, stop: &|| false };
            assert_eq!(mover.choose(&TicTacToe, &turn, Stream::test(1)), Ok(expected.into()));
        }
    }

    #[test]
    fn one_that_does_not_read_or_talks_without_end_has_no_more_time() {
        let mut deaf = engine("yes \"$(printf 'ugiok\\nreadyok\\nbestmove b2')\"").mover();
        let start = TicTacToe.startpos();
        // A position that fills the pipe soon.
        let text = TicTacToe.state_text(&start) + &" ".repeat(10_000);
        let turn = Turn { start: &text, moves: &[], state: &start, stop: &|| false };
        let told = (0..200).find_map(|_| deaf.choose(&TicTacToe, &turn, Stream::test(1)).err());
        assert!(told.as_ref().is_some_and(|told| told.contains("does not read its commands")), "{told:?}");

        let endless = greeting("while true; do echo info string x; done");
        let asked = Instant::now();
        let mut process = Process::start(&engine(&endless)).unwrap();
        process.say("go").unwrap();
        let told = process.answer(Duration::from_millis(300), "bestmove", &|| false).unwrap_err();
        assert!(told.contains("did not answer") && asked.elapsed() < Duration::from_secs(20), "{told}");
        assert!(process.answer(START, "bestmove", &|| true).unwrap_err().contains("stopped"));
    }

    #[test]
    fn what_an_engine_has_started_ends_with_it() {
        let marked = format!("sleep 7{:06}", std::process::id());
        let wrapper = engine(&format!("{marked} & {}", greeting("echo bestmove b2")));
        let running = || {
            let entries = std::fs::read_dir("/proc").unwrap();
            let lines = entries.filter_map(|entry| std::fs::read(entry.ok()?.path().join("cmdline")).ok());
            lines.filter(|line| String::from_utf8_lossy(line).replace('\0', " ").trim() == marked).count()
        };
        let wait = |wanted: usize| {
            let began = Instant::now();
            while running() != wanted {
                assert!(began.elapsed() < Duration::from_secs(20), "{} run, not {wanted}", running());
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        let process = Process::start(&wrapper).unwrap();
        wait(1);
        drop(process);
        wait(0);
    }

    #[test]
    fn an_engine_that_does_not_listen_is_ended() {
        let deaf = engine("trap '' TERM; echo ugiok; echo readyok; while true; do sleep 0.05; done");
        let process = Process::start(&deaf).unwrap();
        let id = process.child().id();
        drop(process);
        assert!(!std::path::Path::new(&format!("/proc/{id}")).exists());
    }
}
