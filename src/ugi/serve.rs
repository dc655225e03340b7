//! The loop that reads commands and answers them, and the thread that thinks.

use std::any::Any;
use std::io::{BufRead, Read, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{Scope, ScopedJoinHandle, scope};
use std::time::Duration;

use crate::game::grid::quoted;
use crate::game::{Action, Game, Outcome, Player, action_texts, legal_list, replay};

use super::command::{self, Command, Query};
use super::{Info, Limits, OptionKind, Position, Thinker, UgiError, UgiOption, perft};

/// Longer lines are refused; the longest game of any registered kind fits many times.
const LONGEST_LINE: u64 = 1 << 20;

/// Speaks the protocol until `quit` or the end of the input; see [the module](super).
///
/// # Errors
/// When a stream fails. Nothing that comes in is an error of this function.
pub fn serve<G: Game>(
    game: G,
    thinker: Box<dyn Thinker<G>>,
    input: impl BufRead,
    output: impl Write + Send,
) -> Result<(), UgiError> {
    let output = Output(Mutex::new((output, None)));
    let read = scope(|scope| {
        let start = game.startpos();
        let mut session = Session {
            game: &game,
            output: &output,
            scope,
            options: thinker.options(),
            thinker: Some(thinker),
            running: None,
            state: start.clone(),
            moves: Vec::new(),
            start,
        };
        let read = session.run(input);
        session.finish(true);
        read
    });
    let (_, failure) = output.0.into_inner().unwrap_or_else(PoisonError::into_inner);
    match failure {
        Some(error) => Err(UgiError::Output(error)),
        None => read.map_err(UgiError::Input),
    }
}

/// The writer that the loop and the thinking thread share, with its first failure.
struct Output<W>(Mutex<(W, Option<std::io::Error>)>);

impl<W: Write> Output<W> {
    /// Writes one or more whole lines at once. After a failure nothing is written any more.
    fn say(&self, lines: &str) {
        let mut guard = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (writer, failure) = &mut *guard;
        if failure.is_none() {
            *failure = writer.write_all(format!("{lines}\n").as_bytes()).and_then(|()| writer.flush()).err();
        }
    }

    /// Says on one line that something cannot be done.
    fn refuse(&self, why: &str) {
        self.say(&format!("info string error {}", one_line(why)));
    }

    fn has_failed(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).1.is_some()
    }
}

/// `text` with each control character replaced by a space.
fn one_line(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).collect()
}

/// A search under way; its thread hands the thinker back.
struct Running<'scope, G> {
    thread: ScopedJoinHandle<'scope, Option<Box<dyn Thinker<G>>>>,
    stop: Arc<AtomicBool>,
    infinite: bool,
}

/// The state of the conversation.
struct Session<'scope, 'env, G: Game, W> {
    game: &'scope G,
    output: &'scope Output<W>,
    scope: &'scope Scope<'scope, 'env>,
    /// The thinker's, as it lists them.
    options: Vec<UgiOption>,
    /// Absent while it thinks.
    thinker: Option<Box<dyn Thinker<G>>>,
    running: Option<Running<'scope, G>>,
    start: G::State,
    moves: Vec<Action>,
    state: G::State,
}

impl<'scope, G: Game, W: Write + Send> Session<'scope, '_, G, W> {
    /// Reads and answers until `quit`, the end of the input, or a failure of a stream.
    fn run(&mut self, mut input: impl BufRead) -> std::io::Result<()> {
        let mut line = Vec::new();
        loop {
            line.clear();
            (&mut input).take(LONGEST_LINE).read_until(b'\n', &mut line)?;
            if line.is_empty() {
                self.finish_script();
            }
            if line.is_empty() || self.output.has_failed() {
                return Ok(());
            }
            if line.len() as u64 == LONGEST_LINE && line.last() != Some(&b'\n') {
                self.output.refuse(&format!("a line is longer than {LONGEST_LINE} bytes and is passed over"));
                skip_line(&mut input)?;
                continue;
            }
            match command::parse(&String::from_utf8_lossy(&line)) {
                Ok(None) => {}
                Ok(Some(Command::Quit)) => return Ok(()),
                Ok(Some(command)) => self.obey(command).unwrap_or_else(|why| self.output.refuse(&why)),
                Err(why) => self.output.refuse(&why),
            }
        }
    }

    /// Carries out a command; the error says why it could not be, and nothing has changed then.
    fn obey(&mut self, command: Command) -> Result<(), String> {
        match command {
            Command::Ugi => {
                let mut lines =
                    format!("id name sparring {}\nid author the sparring authors\n", env!("CARGO_PKG_VERSION"));
                for option in &self.options {
                    lines.push_str(&format!("{option}\n"));
                }
                self.output.say(&format!("{lines}ugiok"));
                Ok(())
            }
            Command::IsReady => {
                // While a search runs there is nothing to prepare, and the answer must not wait.
                let (game, thinker) = (self.game, self.thinker.as_mut());
                if let Some(thinker) = thinker.filter(|_| self.running.is_none()) {
                    let prepared = catch_unwind(AssertUnwindSafe(|| thinker.prepare(game)));
                    if let Err(why) = prepared.unwrap_or_else(|panic| Err(panic_text(&*panic).to_owned())) {
                        self.output.refuse(&format!("the engine cannot get ready: {why}"));
                    }
                }
                self.output.say("readyok");
                Ok(())
            }
            Command::Query(query) => {
                self.output.say(&format!("response {}", self.respond(query)));
                Ok(())
            }
            Command::Stop => {
                self.finish(true);
                Ok(())
            }
            Command::Quit => Ok(()),
            Command::NewGame => {
                self.finish(false);
                self.idle_thinker()?.new_game();
                self.start = self.game.startpos();
                self.state.clone_from(&self.start);
                self.moves.clear();
                Ok(())
            }
            Command::SetOption { name, value } => {
                self.finish(false);
                let (name, value) = check_option(&self.options, &name, value.as_deref())?;
                self.idle_thinker()?.set_option(&name, &value)
            }
            Command::Position { fen, moves } => {
                self.finish(false);
                self.set_position(fen.as_deref(), &moves)
            }
            Command::Go(limits) => {
                self.finish(false);
                self.go(limits)
            }
            Command::Perft(depth) => {
                self.finish(false);
                self.go_perft(depth);
                Ok(())
            }
        }
    }

    fn respond(&self, query: Query) -> String {
        let end = self.game.end(&self.state);
        let yes = |truth: bool| if truth { "true" } else { "false" };
        match query {
            Query::GameOver => yes(end.is_some()),
            Query::FirstToMove => yes(self.game.to_move(&self.state) == Player::First),
            Query::Result => match end.map(|end| end.outcome) {
                None => "none",
                Some(Outcome::Draw) => "draw",
                Some(Outcome::Win(Player::First)) => "p1win",
                Some(Outcome::Win(Player::Second)) => "p2win",
            },
            Query::Legal | Query::Planes if end.is_some() => "none",
            Query::Fen => return self.game.state_text(&self.state),
            Query::Legal => {
                let moves = legal_list(self.game, &self.state).into_iter().map(|action| self.game.action_text(action));
                return moves.collect::<Vec<_>>().join(" ");
            }
            Query::Actions => return action_texts(self.game).join(" "),
            Query::Planes => {
                let mut planes = vec![0.0; self.game.plane_shape().len()];
                self.game.encode(&self.state, &mut planes);
                return planes.iter().map(ToString::to_string).collect::<Vec<_>>().join(" ");
            }
        }
        .to_owned()
    }

    fn set_position(&mut self, fen: Option<&str>, moves: &[String]) -> Result<(), String> {
        let start = match fen {
            None => self.game.startpos(),
            Some(fen) => self.game.parse_state(fen).map_err(|error| error.to_string())?,
        };
        let (state, actions) = replay(self.game, &start, moves).map_err(|error| error.to_string())?;
        (self.start, self.state, self.moves) = (start, state, actions);
        Ok(())
    }

    fn go(&mut self, limits: Limits) -> Result<(), String> {
        if self.game.end(&self.state).is_some() {
            let result = self.respond(Query::Result);
            self.output.say(&format!("info string no move: the game is over, {result}\nbestmove none"));
            return Ok(());
        }
        self.idle_thinker()?;
        let mut thinker = self.thinker.take();
        let (game, output) = (self.game, self.output);
        let (start, moves, state) = (self.start.clone(), self.moves.clone(), self.state.clone());
        self.launch(limits.infinite, move |stop| {
            if let Some(thinker) = &mut thinker {
                let position = Position { start: &start, moves: &moves, state: &state };
                let answer = think(game, thinker.as_mut(), &position, &limits, stop, output);
                while limits.infinite && !stop.load(Ordering::Acquire) {
                    // Whoever stops the search wakes this thread; it may also wake up by itself.
                    std::thread::park_timeout(Duration::from_secs(1));
                }
                match answer {
                    Ok(text) => output.say(&format!("bestmove {text}")),
                    Err(why) => {
                        let why = one_line(&why);
                        output.say(&format!("info string error the search failed: {why}\nbestmove none"));
                    }
                }
            }
            thinker
        });
        Ok(())
    }

    fn go_perft(&mut self, depth: usize) {
        let thinker = self.thinker.take();
        let (game, output, state) = (self.game, self.output, self.state.clone());
        self.launch(false, move |stop| {
            match perft::lines(game, &state, depth, stop) {
                Some(lines) => output.say(&lines),
                None => output.refuse("perft was stopped before its end"),
            }
            thinker
        });
    }

    /// Starts the thread of a search.
    fn launch(
        &mut self,
        infinite: bool,
        work: impl FnOnce(&AtomicBool) -> Option<Box<dyn Thinker<G>>> + Send + 'scope,
    ) {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let thread = self.scope.spawn(move || work(&seen));
        self.running = Some(Running { thread, stop, infinite });
    }

    /// At the end of the input: lets a search with limits come to its end, as long as somebody hears its answer.
    fn finish_script(&mut self) {
        while let Some(running) = &self.running
            && !running.infinite
            && !running.thread.is_finished()
            && !self.output.has_failed()
        {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    }

    /// Waits for the search under way, if there is one; ends it first with `at_once` or when it is infinite.
    fn finish(&mut self, at_once: bool) {
        if let Some(Running { thread, stop, infinite }) = self.running.take() {
            if at_once || infinite {
                stop.store(true, Ordering::Release);
                thread.thread().unpark();
            }
            self.thinker = thread.join().unwrap_or(None);
        }
    }

    /// The thinker, which is idle once the search is finished.
    fn idle_thinker(&mut self) -> Result<&mut Box<dyn Thinker<G>>, String> {
        self.thinker.as_mut().ok_or_else(|| "the engine broke in an earlier search; start it anew".to_owned())
    }
}

/// Reads on to the end of the line.
fn skip_line(input: &mut impl BufRead) -> std::io::Result<()> {
    let mut piece = Vec::new();
    loop {
        piece.clear();
        input.take(LONGEST_LINE).read_until(b'\n', &mut piece)?;
        if piece.is_empty() || piece.last() == Some(&b'\n') {
            return Ok(());
        }
    }
}

/// Lets the thinker think; the text of its move. A panic of the thinker is an error like any other.
fn think<G: Game, W: Write>(
    game: &G,
    thinker: &mut dyn Thinker<G>,
    position: &Position<'_, G>,
    limits: &Limits,
    stop: &AtomicBool,
    output: &Output<W>,
) -> Result<String, String> {
    let mut tell = |info: Info| output.say(&info_line(game, &info));
    let thought = catch_unwind(AssertUnwindSafe(|| thinker.think(game, position, limits, stop, &mut tell)));
    let action = thought.unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_text(&*panic))))?;
    if !legal_list(game, position.state).contains(&action) {
        return Err(format!("it chose action {}, which is not legal here; this is a bug", action.0));
    }
    Ok(game.action_text(action))
}

/// What a panic said.
fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

/// The line that tells an [`Info`].
fn info_line<G: Game>(game: &G, info: &Info) -> String {
    let mut line = "info".to_owned();
    if let Some(depth) = info.depth {
        line.push_str(&format!(" depth {depth}"));
    }
    if let Some(depth) = info.seldepth {
        line.push_str(&format!(" seldepth {depth}"));
    }
    if let Some(time) = info.time {
        line.push_str(&format!(" time {}", time.as_millis()));
    }
    if let Some(nodes) = info.nodes {
        line.push_str(&format!(" nodes {nodes}"));
        if let Some(time) = info.time.filter(|time| !time.is_zero()) {
            line.push_str(&format!(" nps {:.0}", nodes as f64 / time.as_secs_f64()));
        }
    }
    if let Some(value) = info.value {
        // The scale of "centipawns" is that of Leela Chess Zero: 90 tan(1.5637541897 Q).
        let utility = f64::from(value.utility(0.0)).clamp(-1.0, 1.0);
        let [win, draw, loss] = [value.win, value.draw, value.loss].map(|share| (1000.0 * share).round());
        let score = match info.mate {
            Some(plies) => format!("mate {plies}"),
            None => format!("cp {}", (90.0 * (1.563_754_189_7 * utility).tan()).round() as i64),
        };
        line.push_str(&format!(" score {score} wdl {win} {draw} {loss}"));
    }
    if !info.line.is_empty() {
        line.push_str(" pv");
        for &action in &info.line {
            line.push_str(&format!(" {}", game.action_text(action)));
        }
    }
    if let Some(text) = &info.text {
        line.push_str(&format!(" string {}", one_line(text)));
    }
    line
}

/// The option's own name and the value, when there is such an option and it takes the value. Names are compared
/// without regard to case, as in UCI.
fn check_option(options: &[UgiOption], name: &str, value: Option<&str>) -> Result<(String, String), String> {
    let Some(option) = options.iter().find(|option| option.name.eq_ignore_ascii_case(name)) else {
        let known: Vec<&str> = options.iter().map(|option| option.name.as_str()).collect();
        let known =
            if known.is_empty() { "there are none".to_owned() } else { format!("known are {}", known.join(", ")) };
        return Err(format!("setoption: there is no option {}; {known}", quoted(name)));
    };
    let expected = match (&option.kind, value) {
        (OptionKind::Button, None | Some("")) => return Ok((option.name.clone(), String::new())),
        (OptionKind::Button, Some(_)) => "no value".to_owned(),
        (_, None) => "a value".to_owned(),
        (OptionKind::String { .. }, Some(value)) => {
            let value = if value == "<empty>" { "" } else { value };
            return Ok((option.name.clone(), value.to_owned()));
        }
        (OptionKind::Check { .. }, Some("true" | "false")) => String::new(),
        (OptionKind::Check { .. }, Some(_)) => "true or false".to_owned(),
        (OptionKind::Spin { min, max, .. }, Some(value)) => match value.parse::<i64>() {
            Ok(number) if (*min..=*max).contains(&number) => String::new(),
            _ => format!("a whole number from {min} to {max}"),
        },
        (OptionKind::Combo { choices, .. }, Some(value)) if choices.iter().any(|choice| choice == value) => {
            String::new()
        }
        (OptionKind::Combo { choices, .. }, Some(_)) => format!("one of {}", choices.join(", ")),
    };
    let value = value.unwrap_or_default();
    if expected.is_empty() {
        return Ok((option.name.clone(), value.to_owned()));
    }
    let got = if value.is_empty() { String::new() } else { format!(", not {}", quoted(value)) };
    Err(format!("setoption: the option {} takes {expected}{got}", option.name))
}
