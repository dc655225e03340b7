//! What a person can say.

use crate::run::strict::nearest;

/// What was said.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// Nothing.
    Nothing,
    /// Anything that is no other command.
    Move(String),
    Board,
    Moves,
    Hint,
    Eval,
    Undo,
    New,
    Swap,
    /// Without a number: what the level is.
    Level(Option<i64>),
    Save(String),
    Resign,
    Help,
    Quit,
}

/// The commands as they are written, and what they do.
pub(super) const COMMANDS: [(&str, &str); 13] = [
    ("MOVE", "make a move, by its notation or its number in the list of moves"),
    ("board", "show the position again"),
    ("moves", "list the possible moves with their numbers"),
    ("hint", "what the opponent would play in your place"),
    ("eval", "what the opponent thinks of the position"),
    ("undo", "take back your last move"),
    ("new", "a new game"),
    ("swap", "change sides"),
    ("level N", "let the opponent make N simulations a move"),
    ("save FILE", "write the game to a file, which `sparring play --load` reads"),
    ("resign", "give up"),
    ("help", "this list"),
    ("quit", "leave"),
];

/// The words that commands begin with.
pub(super) fn words() -> impl Iterator<Item = &'static str> {
    COMMANDS[1..].iter().filter_map(|(usage, _)| usage.split(' ').next())
}

/// The command on a line.
///
/// # Errors
/// What is wrong and what is expected.
pub(super) fn parse(line: &str) -> Result<Command, String> {
    let line = line.trim();
    let (word, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
    let rest = rest.trim();
    let alone = |command: Command| match rest {
        "" => Ok(command),
        _ => Err(format!("`{word}` stands alone")),
    };
    match word {
        "" => Ok(Command::Nothing),
        "board" => alone(Command::Board),
        "moves" => alone(Command::Moves),
        "hint" => alone(Command::Hint),
        "eval" => alone(Command::Eval),
        "undo" => alone(Command::Undo),
        "new" => alone(Command::New),
        "swap" => alone(Command::Swap),
        "resign" => alone(Command::Resign),
        "help" | "?" => alone(Command::Help),
        "quit" | "exit" => alone(Command::Quit),
        "level" if rest.is_empty() => Ok(Command::Level(None)),
        "level" => match rest.parse() {
            Ok(simulations) => Ok(Command::Level(Some(simulations))),
            Err(_) => Err(format!("`level` takes a number of simulations, not {rest:?}")),
        },
        "save" if rest.is_empty() => Err("`save` takes the name of a file".to_owned()),
        "save" => Ok(Command::Save(rest.to_owned())),
        // A word of several letters that looks like a command is more likely that than a move.
        _ => match nearest(word, words()) {
            Some(near) if word.len() > 3 && !word.contains(|sign: char| sign.is_ascii_digit()) => {
                Err(format!("there is no command {word:?}; did you mean `{near}`?"))
            }
            _ => Ok(Command::Move(line.to_owned())),
        },
    }
}
