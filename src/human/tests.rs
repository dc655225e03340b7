use std::io::Write;
use std::sync::atomic::Ordering::Relaxed;

use super::*;
use crate::games::connect4::ConnectFour;
use crate::games::othello::Othello;
use crate::games::tictactoe::TicTacToe;
use crate::games::uttt::Uttt;
use crate::games::zener::Zener;
use crate::play::Player as Opponent;
use crate::ugi::SeatThinker;

/// Lines of a script, which may contain a Ctrl-C.
struct Script<'s> {
    lines: std::str::Split<'s, char>,
    words: Vec<Vec<String>>,
}

impl Lines for Script<'_> {
    fn ask(&mut self, prompt: &Drawing, words: Vec<String>, output: &mut dyn Write) -> std::io::Result<Said> {
        write!(output, "{prompt}")?;
        self.words.push(words);
        let Some(line) = self.lines.next() else { return Ok(Said::End) };
        // As a terminal echoes it.
        writeln!(output, "{line}")?;
        Ok(if line == "^C" { Said::Interrupted } else { Said::Line(line.to_owned()) })
    }

    fn has_person(&self) -> bool {
        true
    }
}

/// What is shown when `said` is said to `opponent`, how the game is left, and what could be said.
fn session<G: Game>(
    game: &G,
    side: Option<Player>,
    opponent: Opponent<G>,
    said: &str,
) -> (String, Left, Vec<Vec<String>>) {
    let mut output = Vec::new();
    let mut lines = Script { lines: said.split('\n'), words: Vec::new() };
    let seat = Seat { side, opponent: opponent.name.clone() };
    let stop = AtomicBool::new(false);
    let terminal = Terminal { lines: &mut lines, output: &mut output, color: false, stop: &stop };
    let thinker = Box::new(SeatThinker::new(opponent));
    let left = play(game, Saved::new(game.startpos()), thinker, seat, terminal).unwrap();
    (String::from_utf8(output).unwrap(), left, lines.words)
}

fn told<G: Game>(game: &G, side: Option<Player>, said: &str) -> String {
    session(game, side, Opponent::mcts(200, 1.0), said).0
}

#[test]
fn a_whole_game_is_played_and_the_end_is_told() {
    // The first free move each time: some of these are taken, which is said and does no harm.
    let text = told(&TicTacToe, Some(Player::First), "a1\na2\na3\nb1\nb2\nb3\nc1\nc2\nc3\nmoves\nb2");
    assert!(text.contains("o plays ") && text.contains("expects"), "{text}");
    assert!(text.contains("you have lost") || text.contains("a draw") || text.contains("you have won"), "{text}");
    assert!(text.ends_with("the game is over; `new`, `undo`, `swap` or `quit`\nthe game is over> "), "{text}");
    assert!(text.contains("[o]") && text.contains("[x]"), "the last move is marked: {text}");
}

#[test]
fn every_command_answers() {
    let said = "help\nboard\nmoves\n#1\nhint\neval\nlevel\nlevel 50\nlevel 0\nlevel x\nundo\nundo\nswap\nnew\nresign\n1\n\
                undo\nquit\nnever";
    let text = told(&TicTacToe, Some(Player::Second), said);
    for part in [
        "save FILE",
        "#1 a1",
        "mcts:200 would play",
        "% loss\nexpected: ",
        "makes 200 simulations a move\n",
        "makes 50 simulations a move now",
        "a number of simulations from 1 to ",
        "`level` takes a number of simulations, not \"x\"",
        "there is no move of yours to take back",
        "you are x now",
        "you have given up",
        "the game is over; `new`",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(!text.contains("never"), "{text}");
}

#[test]
fn what_is_wrong_is_explained() {
    let text = told(&ConnectFour, Some(Player::First), "8\nhelpp\nboard now\nsave\n\n#9\n4 4");
    for part in [
        "there is no move number 8; `moves` lists #1 to #7",
        "did you mean `help`?",
        "`board` stands alone",
        "`save` takes",
        "no move number #9",
        "\"4 4\": expected a column number 1 to 7; `moves` lists moves",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let taken = told(&TicTacToe, Some(Player::First), "b2\nb2");
    assert!(taken.contains("b2 is not possible now"), "{taken}");
}

#[test]
fn a_bare_number_counts_moves_where_it_is_no_move_itself() {
    let text = told(&TicTacToe, Some(Player::First), "5");
    assert!(text.contains("[x]") && text.contains(" 2  .[x]"), "{text}");
    assert!(told(&TicTacToe, Some(Player::First), "B2").contains(" 2  .[x]"));
    let column = told(&ConnectFour, Some(Player::First), "3");
    assert!(column.contains(" . .[x]. ."), "{column}");
    // A full column is no number of a move either.
    let text = told_from(&ConnectFour, "o6/x6/o6/x6/o6/x6 x", "1\n#1");
    assert!(text.contains("1 is not possible now") && text.contains(" x[x]"), "{text}");
}

/// What is shown when `said` is said in a position in which the first player is to move.
fn told_from<G: Game>(game: &G, fen: &str, said: &str) -> String {
    let mut output = Vec::new();
    let mut lines = Script { lines: said.split('\n'), words: Vec::new() };
    let seat = Seat { side: Some(Player::First), opponent: "random".to_owned() };
    let stop = AtomicBool::new(false);
    let terminal = Terminal { lines: &mut lines, output: &mut output, color: false, stop: &stop };
    let saved = Saved::new(game.parse_state(fen).unwrap());
    play(game, saved, Box::new(SeatThinker::new(Opponent::random())), seat, terminal).unwrap();
    String::from_utf8(output).unwrap()
}

#[test]
fn an_opponent_without_a_level_says_so() {
    let (text, ..) = session(&TicTacToe, Some(Player::First), Opponent::random(), "level 5\nlevel\neval\nhint");
    assert_eq!(text.matches("random has no level").count(), 2, "{text}");
    assert!(text.contains("random has no opinion") && text.contains("random would play"), "{text}");
}

#[test]
fn moves_and_commands_can_be_completed() {
    let (_, _, words) = session(&TicTacToe, Some(Player::First), Opponent::mcts(20, 1.0), "b2\nresign");
    assert_eq!(words.len(), 3);
    assert!(words[0].starts_with(&["a1".to_owned(), "a2".to_owned()]) && words[0].contains(&"save".to_owned()));
    assert_eq!(words[1].iter().filter(|word| word.len() == 2).count(), 7, "{words:?}");
    assert!(!words[2].contains(&"a1".to_owned()) && words[2].contains(&"undo".to_owned()));
    assert!(!words[0].contains(&"MOVE".to_owned()));
}

#[test]
fn ctrl_c_twice_leaves_and_once_does_not() {
    let (text, left, _) = session(&TicTacToe, Some(Player::First), Opponent::mcts(20, 1.0), "^C\nb2\n^C\n^C\nnever");
    assert_eq!(left, Left::Interrupted);
    assert_eq!(text.matches("Ctrl-C again leaves").count(), 2, "{text}");
    assert!(text.contains("[x]"), "{text}");
    assert_eq!(session(&TicTacToe, Some(Player::First), Opponent::mcts(20, 1.0), "b2").1, Left::Quit);
}

#[test]
fn undo_takes_back_the_persons_own_move_where_players_do_not_alternate() {
    let game = Zener::default();
    let first = |state: &_| game.action_text(legal_list(&game, state)[0]);
    let one = first(&game.startpos());
    let text = told(&game, Some(Player::First), &format!("{one}\nundo\nmoves"));
    // Back at the start, where the same moves are possible.
    assert!(text.contains("black plays"), "{text}");
    assert!(text.trim_end().ends_with("white, first move>") && text.contains(&format!("#1 {one}")), "{text}");
    assert_eq!(text.matches(&game.draw(&game.startpos())).count(), 2, "{text}");
}

#[test]
fn of_an_opponents_moves_in_a_row_only_the_last_is_drawn() {
    let text = told(&Zener::default(), Some(Player::First), "g3f3");
    // The start, the person's move, and what black made of it in two moves.
    assert_eq!(text.matches("black plays").count(), 2, "{text}");
    assert_eq!(text.matches("'s home row").count(), 6, "{text}");
    assert!(text.contains("white, compulsory ") || text.contains("white, any piece"), "{text}");
    // A move of the person's own is drawn each time.
    let both = told(&Zener::default(), Some(Player::Second), "#1\n#1");
    assert!(both.contains("black, compulsory ") && both.contains("black, free move> "), "{both}");
}

#[test]
fn a_game_is_saved_once_and_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("game");
    let lines = format!("b2\nsave {0}\nsave {0}\nsave {0}/x", file.display());
    let text = told(&TicTacToe, Some(Player::First), &lines);
    assert!(text.contains("saved as") && text.contains("is there already"), "{text}");
    let written = std::fs::read_to_string(file).unwrap();
    assert_eq!(Saved::read(&TicTacToe, &written).unwrap().moves.len(), 2);
    // The engine protocol takes it too.
    let mut output = Vec::new();
    let thinker = Box::new(SeatThinker::new(Opponent::mcts(10, 1.0)));
    crate::ugi::serve(TicTacToe, thinker, format!("{written}query p1turn\n").as_bytes(), &mut output).unwrap();
    assert_eq!(String::from_utf8(output).unwrap(), "response true\n");
}

#[test]
fn without_a_side_the_person_watches() {
    let text = told(&TicTacToe, None, "");
    assert!(text.contains("x plays") && text.contains("o plays"), "{text}");
    assert!(text.contains("a draw") || text.contains("has won"), "{text}");
    let resigned = told(&TicTacToe, None, "new\nresign\nundo\nundo\nboard\n");
    assert!(resigned.contains("the game is over") && resigned.contains("held, "), "{resigned}");
}

/// Thinks until it is stopped, as Ctrl-C does, or fails.
struct Stubborn<'s> {
    stop: &'s AtomicBool,
    fails: bool,
}

impl<G: Game> Thinker<G> for Stubborn<'_> {
    fn think(
        &mut self,
        game: &G,
        position: &Position<'_, G>,
        limits: &Limits,
        stop: &AtomicBool,
        _: &mut dyn FnMut(Info),
    ) -> Result<Action, String> {
        assert!(!stop.load(Relaxed) && *limits == Limits::default());
        if std::mem::take(&mut self.fails) {
            return Err("it broke".to_owned());
        }
        self.stop.store(true, Relaxed);
        assert!(stop.load(Relaxed), "the flag of the terminal is the one that is looked at");
        Ok(legal_list(game, position.state)[0])
    }

    fn new_game(&mut self) {}

    fn options(&self) -> Vec<crate::ugi::UgiOption> {
        Vec::new()
    }

    fn set_option(&mut self, name: &str, _: &str) -> Result<(), String> {
        Err(name.to_owned())
    }
}

#[test]
fn a_watched_game_is_held_by_ctrl_c_and_a_failing_opponent() {
    static STOP: AtomicBool = AtomicBool::new(false);
    let session = |side, fails, lines: &mut dyn Lines| {
        let mut output = Vec::new();
        let seat = Seat { side, opponent: "stubborn".to_owned() };
        let terminal = Terminal { lines, output: &mut output, color: true, stop: &STOP };
        let thinker = Box::new(Stubborn { stop: &STOP, fails });
        let left = play(&TicTacToe, Saved::new(TicTacToe.startpos()), thinker, seat, terminal);
        (String::from_utf8(output).unwrap(), left)
    };
    let script = |text: &'static str| Script { lines: text.split('\n'), words: Vec::new() };
    // Each move is interrupted; two are made by the person, one for each side.
    let (text, _) = session(None, false, &mut script("\nc3\nc2\n\nquit"));
    assert_eq!(text.matches("plays a").count(), 3, "{text}");
    assert!(text.contains("held, \u{1b}") || text.contains("held, x> "), "{text}");
    assert!(text.contains("\u{1b}[") && text.contains("you can move for both sides"), "{text}");
    // A person who plays only gets the answer sooner.
    let (text, _) = session(Some(Player::First), false, &mut script("b2\nc3"));
    assert!(text.contains("o plays a1") && text.contains("o plays a2") && !text.contains("held"), "{text}");
    // A failure holds the game; nothing said lets it go on.
    let (text, _) = session(Some(Player::Second), true, &mut script("undo\n\nb2"));
    assert!(text.contains("cannot move: it broke") && text.contains("x plays a1"), "{text}");
    // Where nobody is there it ends the game.
    let (_, left) = session(Some(Player::Second), true, &mut Plain::piped("b2".as_bytes()));
    assert!(matches!(left, Err(HumanError::Thinker(problem)) if problem == "it broke"));
}

#[test]
fn everything_shown_fits_a_terminal() {
    fn check<G: Game>(game: &G) {
        let text = told(game, Some(Player::First), "help\nmoves\n#1\neval\nhint\nmoves\n#1\neval\nlevel 20\n#1\nx y z");
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{}: {text}", G::NAME);
        let board = game.draw(&game.startpos()).lines().count();
        // The board with a prompt, an opinion and what the opponent played in two moves.
        assert!(board + 1 + 2 + 2 < 24, "{}: {text}", G::NAME);
    }
    check(&Uttt);
    check(&Zener::default());
    check(&ConnectFour);
    check(&Othello::new(10).unwrap());
}
