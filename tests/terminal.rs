//! `sparring play` in a real terminal of 80 columns and 24 rows, which tmux provides.
//!
//! The screens of docs/playing.md are made here: `SPARRING_SCREENS=write cargo test --release --test terminal` writes
//! them, otherwise they are compared.

mod common;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::{Duration, Instant};

use common::PROGRAM;

/// Longer than anything takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(120);

/// A terminal in which `sparring play` runs. Dropped, it is closed.
struct Terminal {
    socket: PathBuf,
    _folder: tempfile::TempDir,
    /// What was there when keys were last pressed.
    before: String,
}

impl Terminal {
    /// `sparring play ARGUMENTS`, then `left with CODE`.
    fn play(arguments: &[&str], no_color: bool) -> Self {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("tmux.conf");
        std::fs::write(&config, "set -g status off\nset -g default-terminal screen-256color\n").unwrap();
        let socket = folder.path().join(format!("{}", COUNT.fetch_add(1, Relaxed)));
        let terminal = Self { socket, _folder: folder, before: String::new() };
        let mut command = terminal.tmux();
        command.arg("-f").arg(config).args(["new-session", "-d", "-x", "80", "-y", "24"]);
        command.args(["sh", "-c", "\"$@\"; echo \"left with $?\"; exec sleep 600", "sh", "env"]);
        command.args(["-u", "CLICOLOR", "-u", "CLICOLOR_FORCE"]);
        command.args(if no_color { vec!["NO_COLOR=1"] } else { vec!["-u", "NO_COLOR"] });
        // `-u` must stand before assignments, and no variable of the tests may reach the program.
        command.args([PROGRAM, "play"]).args(arguments);
        let opened = command.output().unwrap_or_else(|error| {
            panic!("tmux is missing ({error}): install it (on Debian and Ubuntu `apt-get install tmux`)")
        });
        assert!(opened.status.success(), "{opened:?}");
        terminal
    }

    fn tmux(&self) -> Command {
        let mut command = Command::new("tmux");
        command.arg("-u").arg("-S").arg(&self.socket).env_remove("TMUX");
        command
    }

    fn run(&self, arguments: &[&str]) -> Output {
        let output = self.tmux().args(arguments).output().unwrap();
        assert!(output.status.success(), "{arguments:?}: {output:?}");
        output
    }

    /// The rows of the screen, with escape codes or without.
    fn screen(&self, codes: bool) -> String {
        let output = self.run(if codes { &["capture-pane", "-p", "-e"] } else { &["capture-pane", "-p"] });
        String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
    }

    /// Types `text` as it is.
    fn text(&mut self, text: &str) {
        self.before = self.screen(false);
        self.run(&["send-keys", "-l", text]);
    }

    /// Presses a key by tmux's name for it.
    fn key(&mut self, name: &str) {
        self.before = self.screen(false);
        self.run(&["send-keys", name]);
    }

    /// Waits until the screen has changed and is as `wanted` says.
    #[track_caller]
    fn wait(&self, wanted: impl Fn(&str) -> bool) -> String {
        let began = Instant::now();
        loop {
            let screen = self.screen(false);
            if screen != self.before && wanted(&screen) {
                assert!(screen.lines().count() <= 24 && screen.lines().all(|line| line.chars().count() <= 80));
                return screen;
            }
            assert!(began.elapsed() < LIMIT, "this screen was not expected:\n{screen}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the last line is `prompt` and nothing else.
    #[track_caller]
    fn prompt(&self, prompt: &str) -> String {
        self.wait(|screen| last(screen) == prompt)
    }

    /// Types a line and waits for the next `prompt`.
    #[track_caller]
    fn say(&mut self, line: &str, prompt: &str) -> String {
        self.before = self.screen(false);
        self.run(&["send-keys", "-l", line]);
        self.run(&["send-keys", "Enter"]);
        self.prompt(prompt)
    }

    /// Waits until the program has ended with `code`.
    #[track_caller]
    fn left(&self, code: i32) {
        self.wait(|screen| last(screen) == format!("left with {code}"));
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        // Where it never began there is nothing to end.
        let _ = self.tmux().arg("kill-server").output();
    }
}

fn last(screen: &str) -> &str {
    screen.lines().last().unwrap_or("")
}

/// The lines of the last board of a screen, from its header to its last row, and what is below.
#[track_caller]
fn last_board<'s>(screen: &'s str, header: &str, rows: usize) -> (Vec<&'s str>, Vec<&'s str>) {
    let lines: Vec<&str> = screen.lines().collect();
    let at = lines.iter().rposition(|line| *line == header);
    let at = at.unwrap_or_else(|| panic!("no whole board is on the screen:\n{screen}"));
    // Some boards have the same line below them.
    let at = if lines[..at].contains(&header) && lines.len() < at + rows { at + 1 - rows } else { at };
    (lines[at..at + rows].to_vec(), lines[at + rows..].to_vec())
}

const UTTT_HEADER: &str = "    a b c   d e f   g h i";

/// The small board that the caption names, as the letters of its columns and the digits of its rows.
#[track_caller]
fn board_to_play(caption: &str) -> (Vec<char>, Vec<char>) {
    let named = caption.split_once("in the board ").unwrap_or_else(|| panic!("{caption}")).1;
    let signs: Vec<char> = named.chars().collect();
    ((signs[0]..=signs[3]).collect(), (signs[1]..=signs[4]).collect())
}

#[test]
fn a_game_of_uttt() {
    let mut terminal = Terminal::play(&["mcts:200", "--game", "uttt"], false);
    let screen = terminal.prompt("x>");
    let (board, below) = last_board(&screen, UTTT_HEADER, 12);
    assert!(board[1..].iter().filter(|line| line.contains('+')).count() == 11, "all may be played: {screen}");
    assert_eq!(below, ["x to move in any board that is not decided", "x>"]);

    // A move: the answer is marked, and the cells of the board that it leads to stand out.
    let screen = terminal.say("e5", "x>");
    let (board, below) = last_board(&screen, UTTT_HEADER, 12);
    assert!(screen.contains("o plays ") && board.iter().any(|line| line.contains("[o]")), "{screen}");
    let (columns, rows) = board_to_play(below[0]);
    let mut open = 0;
    for line in &board[1..] {
        let row = line.trim_start().chars().next().unwrap();
        for (at, sign) in line.char_indices().filter(|&(_, sign)| sign == '+' && row != '-') {
            let column = board[0].chars().nth(at).unwrap();
            assert!(columns.contains(&column) && rows.contains(&row), "{sign} at {column}{row}: {screen}");
            open += 1;
        }
    }
    assert!((8..=9).contains(&open), "{screen}");
    let colored = terminal.screen(true);
    for (what, code) in [("x", "36m"), ("o", "35m"), ("where to play", "32m")] {
        assert!(colored.contains(code), "{what} has its colour: {colored:?}");
    }

    // Tab lists the moves of a column, and completes a command.
    terminal.text(&columns[0].to_string());
    terminal.key("Tab");
    terminal.key("Tab");
    let candidates: Vec<String> = rows.iter().map(|row| format!("{}{row}", columns[0])).collect();
    let listed = |line: &str| line.split_whitespace().filter(|word| candidates.iter().any(|c| c == word)).count() >= 2;
    terminal.wait(|screen| screen.lines().any(listed) && last(screen) == format!("x> {}", columns[0]));
    terminal.key("C-u");
    terminal.prompt("x>");
    terminal.text("hi");
    terminal.key("Tab");
    terminal.wait(|screen| last(screen) == "x> hint");
    terminal.key("Enter");
    let screen = terminal.prompt("x>");
    let hint = screen.lines().rev().find_map(|line| line.strip_prefix("mcts:200 would play ")).unwrap().to_owned();
    assert!(columns.contains(&hint.chars().next().unwrap()), "{screen}");

    // What is wrong is said, and the board stays in sight.
    let elsewhere = if columns[0] == 'a' { "i1" } else { "a1" };
    let screen = terminal.say(elsewhere, "x>");
    assert!(screen.contains(&format!("{elsewhere} is not possible now; `moves` lists what is")), "{screen}");
    last_board(&screen, UTTT_HEADER, 12);
    let screen = terminal.say("eval", "x>");
    assert!(screen.contains("% loss\nexpected: "), "{screen}");

    // The history brings lines back: up to `hint`, past `eval` and the illegal move.
    ["Up", "Up", "Up"].map(|key| terminal.key(key));
    terminal.wait(|screen| last(screen) == "x> hint");
    terminal.key("C-u");
    terminal.prompt("x>");

    // A move and back again.
    let screen = terminal.say(&hint, "x>");
    let before = last_board(&screen, UTTT_HEADER, 12).0.join("\n");
    assert_eq!(before.matches(['x', 'o']).count(), 4, "{screen}");
    let screen = terminal.say("undo", "x>");
    let (board, below) = last_board(&screen, UTTT_HEADER, 12);
    assert_eq!(board.join("\n").matches(['x', 'o']).count(), 2, "{screen}");
    assert_eq!(board_to_play(below[0]), (columns, rows));
    terminal.text("quit");
    terminal.key("Enter");
    terminal.left(0);
}

const ZENER_HEADER: &str = "   1  2  3  4  5";

#[test]
fn a_game_of_zener() {
    let mut terminal = Terminal::play(&["mcts:200", "--game", "zener"], false);
    terminal.prompt("white, first move>");
    // Black answers with two moves, then white has a compulsory one and a free one.
    let screen = terminal.say("g3f3", "white, compulsory wave>".replace("wave", compulsory()).as_str());
    assert_eq!(screen.matches("black plays ").count(), 2, "{screen}");
    assert!(screen.contains("white's home row") && screen.contains("black's home row"), "{screen}");
    assert!(screen.contains("3 of at most 200 moves made"), "{screen}");
    assert_eq!(screen.matches('*').count(), 2, "on the board and in the caption: {screen}");
    let screen = terminal.say("moves", last(&screen).to_owned().as_str());
    let own = screen.lines().rev().find(|line| line.starts_with("#1 ")).unwrap().to_owned();
    let (number, text) = own.split("  ").next().unwrap().split_once(' ').unwrap();
    assert_eq!((number, text.len()), ("#1", 4), "{own}");
    let screen = terminal.say("1", "white, free move>");
    assert!(screen.contains("'") && screen.contains("4 of at most"), "{screen}");
    let square = &text[2..];
    assert!(screen.lines().any(|line| line.contains('[') && line.starts_with(&square[..1].to_uppercase())), "{screen}");
    let screen = terminal.say("undo", "white, compulsory wave>".replace("wave", compulsory()).as_str());
    assert!(screen.contains("3 of at most"), "{screen}");
    // Once Ctrl-C only says how to leave.
    terminal.text("half a li");
    terminal.key("C-c");
    let screen = terminal.wait(|screen| screen.contains("Ctrl-C again leaves") && last(screen).ends_with('>'));
    assert!(last(&screen).starts_with("white, compulsory"), "{screen}");
    terminal.key("C-d");
    terminal.left(0);
}

/// What the first moves above lead to.
fn compulsory() -> &'static str {
    "wave"
}

#[test]
fn high_stacks_are_shown_whole() {
    let fen = "5/5/2(wWxXcCqQsS)2/5/5/5/5 w q - 9";
    let _ = fen;
    let tall = "5/5/(WwX)1(xCQS)1(cqs)/5/5/5/5 w s - 9";
    let terminal = Terminal::play(&["mcts:20", "--game", "zener", "--position", tall], true);
    let screen = terminal.prompt("white, compulsory star>");
    assert!(screen.contains("C  WwX  .  xCQS* .  cqs  C"), "{screen}");
    assert!(!terminal.screen(true).contains("\u{1b}["), "NO_COLOR: {screen}");
}

#[test]
fn ctrl_c_makes_the_opponent_answer_and_twice_leaves() {
    let mut terminal = Terminal::play(&["mcts:100000000", "--game", "connect4", "--side", "second"], false);
    terminal.wait(|screen| last(screen) == "thinking; Ctrl-C makes it answer at once");
    std::thread::sleep(Duration::from_millis(200));
    terminal.key("C-c");
    let screen = terminal.prompt("o>");
    assert!(screen.contains("x plays ") && !screen.contains("thinking"), "{screen}");
    terminal.key("C-c");
    terminal.wait(|screen| screen.contains("Ctrl-C again leaves") && last(screen) == "o>");
    terminal.key("C-c");
    terminal.left(130);
}

#[test]
fn a_watched_game_is_held() {
    let mut terminal = Terminal::play(&["mcts:100000000", "--game", "uttt", "--as", "none"], false);
    terminal.wait(|screen| last(screen).starts_with("thinking"));
    std::thread::sleep(Duration::from_millis(200));
    terminal.key("C-c");
    let screen = terminal.prompt("held, o>");
    assert!(screen.contains("x plays ") && screen.contains("you can move for both sides"), "{screen}");
    terminal.key("Enter");
    terminal.wait(|screen| last(screen).starts_with("thinking"));
    terminal.key("C-c");
    terminal.prompt("held, x>");
    terminal.key("C-d");
    terminal.left(0);
}

/// The screens of docs/playing.md, by name.
fn screens() -> Vec<(&'static str, String)> {
    let mut shots = Vec::new();
    let mut terminal = Terminal::play(&["mcts:1000", "--game", "uttt"], false);
    terminal.prompt("x>");
    terminal.say("e5", "x>");
    shots.push(("uttt", terminal.say("hint", "x>")));
    drop(terminal);
    let start = "1qwxc/s4/5/5/2(Xq)2/1W3/C2QS w w - 12";
    let _ = start;
    let mut terminal = Terminal::play(&["mcts:1000", "--game", "zener"], false);
    terminal.prompt("white, first move>");
    terminal.text("g3f3");
    terminal.key("Enter");
    let screen = terminal.wait(|screen| last(screen).starts_with("white, ") && screen.contains("black plays"));
    let prompt = last(&screen).to_owned();
    shots.push(("zener", terminal.say("moves", &prompt)));
    shots
}

#[test]
fn the_screens_of_the_docs_are_true() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/playing.md");
    let mut text = std::fs::read_to_string(&file).unwrap();
    let write = std::env::var_os("SPARRING_SCREENS").is_some_and(|value| value == "write");
    for (name, screen) in screens() {
        let begin = format!("<!-- screen {name} -->\n```text\n");
        let at = text.find(&begin).unwrap_or_else(|| panic!("no {begin:?} in docs/playing.md")) + begin.len();
        let end = at + text[at..].find("\n```").expect("the block ends");
        if write {
            text.replace_range(at..end, &screen);
        } else {
            assert_eq!(
                &text[at..end],
                screen,
                "the screen {name} has changed; if it should have: SPARRING_SCREENS=write cargo test --release --test terminal"
            );
        }
    }
    if write {
        std::fs::write(&file, text).unwrap();
    }
}
