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
        // The shell outlives Ctrl-C, which the whole group of processes gets.
        command.args(["sh", "-c", "trap : INT; \"$@\"; echo \"left with $?\"; exec sleep 600", "sh", "env"]);
        command.args(["-u", "CLICOLOR", "-u", "CLICOLOR_FORCE"]);
        command.args(if no_color { vec!["NO_COLOR=1"] } else { vec!["-u", "NO_COLOR"] });
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

    /// Waits until the last line is a prompt with nothing behind it; the screen, and the prompt.
    #[track_caller]
    fn prompt(&self) -> (String, String) {
        let screen = self.wait(|screen| last(screen).ends_with('>'));
        let prompt = last(&screen).to_owned();
        (screen, prompt)
    }

    /// Types a line and waits for the next prompt.
    #[track_caller]
    fn say(&mut self, line: &str) -> (String, String) {
        self.before = self.screen(false);
        self.run(&["send-keys", "-l", line]);
        self.run(&["send-keys", "Enter"]);
        self.prompt()
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
    let (screen, _) = terminal.prompt();
    let (board, below) = last_board(&screen, UTTT_HEADER, 12);
    assert_eq!(board.join("").matches('+').count(), 81 + 4, "all may be played: {screen}");
    assert_eq!(below, ["x to move in any board that is not decided", "x>"]);

    // A move: the answer is marked, and the cells of the board that it leads to stand out.
    let (screen, _) = terminal.say("e5");
    let (board, below) = last_board(&screen, UTTT_HEADER, 12);
    assert!(screen.contains("o plays ") && board.iter().any(|line| line.contains("[o]")), "{screen}");
    let (columns, rows) = board_to_play(below[0]);
    let mut open = 0;
    for line in board[1..].iter().filter(|line| !line.contains('-')) {
        let row = line.trim_start().chars().next().unwrap();
        for (at, _) in line.match_indices('+') {
            let column = board[0].chars().nth(at).unwrap();
            assert!(columns.contains(&column) && rows.contains(&row), "{column}{row}: {screen}");
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
    let listed = |line: &str| candidates.iter().filter(|c| line.split_whitespace().any(|word| word == *c)).count() >= 2;
    terminal.wait(|screen| screen.lines().any(listed) && last(screen) == format!("x> {}", columns[0]));
    terminal.key("C-u");
    terminal.prompt();
    terminal.text("hi");
    terminal.key("Tab");
    terminal.wait(|screen| last(screen) == "x> hint");
    terminal.key("Enter");
    let (screen, _) = terminal.prompt();
    let hint = screen.lines().rev().find_map(|line| line.strip_prefix("mcts:200 would play ")).unwrap().to_owned();
    assert!(columns.contains(&hint.chars().next().unwrap()), "{screen}");

    // What is wrong is said.
    let elsewhere = if columns[0] == 'a' { "i1" } else { "a1" };
    let (screen, prompt) = terminal.say(elsewhere);
    assert!(screen.contains(&format!("{elsewhere} is not possible now; `moves` lists what is")), "{screen}");
    assert_eq!(prompt, "x>");
    let (screen, _) = terminal.say("eval");
    assert!(screen.contains("% loss\nexpected: "), "{screen}");

    // The history brings lines back: `eval`, the illegal move, `hint`.
    for _ in 0..3 {
        terminal.key("Up");
    }
    terminal.wait(|screen| last(screen) == "x> hint");
    terminal.key("C-u");
    terminal.prompt();

    // A move and back again.
    let stones = |screen: &str| last_board(screen, UTTT_HEADER, 12).0.join("").matches(['x', 'o']).count();
    let (screen, _) = terminal.say(&hint);
    assert_eq!(stones(&screen), 4, "{screen}");
    let (screen, _) = terminal.say("undo");
    assert_eq!(stones(&screen), 2, "{screen}");
    assert_eq!(board_to_play(last_board(&screen, UTTT_HEADER, 12).1[0]), (columns, rows));
    terminal.text("quit");
    terminal.key("Enter");
    terminal.left(0);
}

#[test]
fn a_game_of_zener() {
    let mut terminal = Terminal::play(&["mcts:200", "--game", "zener"], false);
    assert_eq!(terminal.prompt().1, "white, first move>");
    // Black answers with two moves; then white has a compulsory one, which is marked, and a free one.
    let (screen, compulsory) = terminal.say("g3f3");
    assert!(compulsory.starts_with("white, compulsory "), "{screen}");
    assert_eq!(screen.matches("black plays ").count(), 2, "{screen}");
    let at = screen.rfind("black plays ").unwrap();
    let board = &screen[at..];
    assert!(board.contains("white's home row") && board.contains("black's home row"), "{screen}");
    assert!(board.contains("3 of at most 200 moves made"), "{screen}");
    assert_eq!(board.matches('*').count(), 2, "on the board and below: {screen}");
    assert_eq!(board.matches('[').count(), 1, "the last move is marked: {screen}");
    let (screen, _) = terminal.say("moves");
    let first = screen.lines().rev().find_map(|line| line.strip_prefix("#1 ")).unwrap();
    let to = first.split_whitespace().next().unwrap()[2..].to_owned();
    let (screen, prompt) = terminal.say("1");
    assert_eq!(prompt, "white, free move>", "{screen}");
    assert!(screen.contains("4 of at most") && screen.contains("not of the "), "{screen}");
    let row = screen.lines().rfind(|line| line.starts_with(&to[..1].to_uppercase())).unwrap();
    assert!(row.contains('[') && row.contains("']"), "the piece just moved: {screen}");
    let (screen, prompt) = terminal.say("undo");
    assert!(prompt == compulsory && screen.contains("3 of at most"), "{screen}");
    // Ctrl-C gives up the line and says how to leave.
    terminal.text("half a li");
    terminal.key("C-c");
    let (screen, prompt) = terminal.prompt();
    assert!(screen.contains("Ctrl-C again leaves") && prompt == compulsory, "{screen}");
    terminal.key("C-d");
    terminal.left(0);
}

#[test]
fn high_stacks_are_shown_whole() {
    let fen = "5/5/(WwX)1(xCQS)1(cqs)/5/5/5/5 w s - 9";
    let terminal = Terminal::play(&["mcts:20", "--game", "zener", "--position", fen], true);
    let (screen, prompt) = terminal.prompt();
    assert_eq!(prompt, "white, compulsory star>");
    assert!(screen.contains("C  WwX .   xCQS* .   cqs C"), "{screen}");
    assert!(!terminal.screen(true).contains("\u{1b}["), "NO_COLOR: {screen}");
}

#[test]
fn ctrl_c_makes_the_opponent_answer_and_twice_leaves() {
    let mut terminal = Terminal::play(&["mcts:100000000", "--game", "connect4", "--side", "second"], false);
    terminal.wait(|screen| last(screen).starts_with("thinking; Ctrl-C "));
    terminal.key("C-c");
    let (screen, prompt) = terminal.prompt();
    assert_eq!(prompt, "o>");
    assert!(screen.contains("x plays ") && !screen.contains("thinking"), "{screen}");
    terminal.key("C-c");
    terminal.wait(|screen| screen.contains("Ctrl-C again leaves") && last(screen) == "o>");
    terminal.key("C-c");
    terminal.left(130);
}

#[test]
fn a_watched_game_is_held() {
    let mut terminal = Terminal::play(&["mcts:100000000", "--game", "uttt", "--as", "none"], false);
    for prompt in ["held, o>", "held, x>"] {
        terminal.wait(|screen| last(screen).starts_with("thinking"));
        terminal.key("C-c");
        let (screen, found) = terminal.prompt();
        assert_eq!(found, prompt);
        assert!(screen.contains(" plays ") && screen.contains("you can move for both sides"), "{screen}");
        terminal.key("Enter");
    }
    // Ctrl-C twice ends even a search that does not listen; this one has mostly answered by then.
    terminal.wait(|screen| last(screen).starts_with("thinking"));
    terminal.key("C-c");
    terminal.prompt();
    terminal.key("C-d");
    terminal.left(0);
}

/// The screens of docs/playing.md, by name.
fn screens() -> Vec<(&'static str, String)> {
    let shot = |game: &str, said: &[&str]| {
        let mut terminal = Terminal::play(&["mcts:1000", "--game", game], false);
        said.iter().fold(terminal.prompt().0, |_, line| terminal.say(line).0)
    };
    vec![("uttt", shot("uttt", &["e5", "eval", "a1"])), ("zener", shot("zener", &["g3f3", "moves", "hint"]))]
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
