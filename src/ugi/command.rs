//! The lines that come in, read into commands.

use std::time::Duration;

use crate::game::grid::quoted;

use super::{Clock, Limits};

/// A command that is well-formed; whether it fits the game and the position is another question.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Ugi,
    IsReady,
    SetOption {
        name: String,
        value: Option<String>,
    },
    NewGame,
    /// `fen: None` is the start.
    Position {
        fen: Option<String>,
        moves: Vec<String>,
    },
    Go(Limits),
    Perft(usize),
    Stop,
    Query(Query),
    Quit,
}

/// What can be asked about the position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Query {
    GameOver,
    FirstToMove,
    Result,
    /// The position as text.
    Fen,
    /// The legal moves, in notation order.
    Legal,
    /// The position as networks see it.
    Planes,
    /// Every move, in the order of a network's policy.
    Actions,
}

/// No perft is deeper: none that deep would end, save where games are short.
const DEEPEST_PERFT: usize = 100;

/// The command on a line; `None` on an empty one.
///
/// # Errors
/// What is wrong with it and what is expected.
pub(super) fn parse(line: &str) -> Result<Option<Command>, String> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let Some((&first, rest)) = words.split_first() else {
        return Ok(None);
    };
    let alone = |command: Command| match rest {
        [] => Ok(command),
        [word, ..] => Err(format!("{first} stands alone, but is followed by {}", quoted(word))),
    };
    let command = match first {
        "ugi" => alone(Command::Ugi),
        "isready" => alone(Command::IsReady),
        "uginewgame" => alone(Command::NewGame),
        "stop" => alone(Command::Stop),
        "quit" => alone(Command::Quit),
        "setoption" => set_option(rest),
        "position" => position(rest),
        "go" => go(rest),
        "query" => query(rest),
        _ => Err(format!(
            "unknown command {}; known are ugi, isready, setoption, uginewgame, position, go, stop, query, quit",
            quoted(first)
        )),
    };
    command.map(Some)
}

fn set_option(words: &[&str]) -> Result<Command, String> {
    let Some((&"name", words)) = words.split_first() else {
        return Err("setoption: expected setoption name NAME [value VALUE]".to_owned());
    };
    let (name, value) = match words.iter().position(|&word| word == "value") {
        Some(at) => (&words[..at], Some(words[at + 1..].join(" "))),
        None => (words, None),
    };
    if name.is_empty() {
        return Err("setoption: the name is missing (setoption name NAME [value VALUE])".to_owned());
    }
    Ok(Command::SetOption { name: name.join(" "), value })
}

fn position(words: &[&str]) -> Result<Command, String> {
    let split = words.iter().position(|&word| word == "moves");
    let (place, moves) = match split {
        Some(at) => (&words[..at], &words[at + 1..]),
        None => (words, &[][..]),
    };
    let fen = match place {
        ["startpos"] => None,
        ["fen", fen @ ..] if !fen.is_empty() => Some(fen.join(" ")),
        _ => return Err("position: expected position startpos|fen FEN [moves MOVE...]".to_owned()),
    };
    Ok(Command::Position { fen, moves: moves.iter().map(|&word| word.to_owned()).collect() })
}

fn go(words: &[&str]) -> Result<Command, String> {
    if let [first, rest @ ..] = words
        && *first == "perft"
    {
        return match rest {
            [depth] => match depth.parse() {
                Ok(depth) if depth <= DEEPEST_PERFT => Ok(Command::Perft(depth)),
                _ => Err(format!("go perft: {} is not a whole number from 0 to {DEEPEST_PERFT}", quoted(depth))),
            },
            _ => Err("go perft: expected go perft DEPTH".to_owned()),
        };
    }
    let mut limits = Limits::default();
    let mut clock = Clock::default();
    let mut seen: Vec<&str> = Vec::new();
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        if seen.contains(&word) {
            return Err(format!("go: {word} is given twice"));
        }
        seen.push(word);
        let mut value = || words.next().copied().ok_or_else(|| format!("go: the number after {word} is missing"));
        match word {
            "infinite" => limits.infinite = true,
            "nodes" => limits.nodes = Some(nodes(value()?)?),
            "movetime" => limits.movetime = Some(milliseconds(word, value()?)?),
            "p1time" => clock.left[0] = Some(milliseconds(word, value()?)?),
            "p2time" => clock.left[1] = Some(milliseconds(word, value()?)?),
            "p1inc" => clock.increment[0] = milliseconds(word, value()?)?,
            "p2inc" => clock.increment[1] = milliseconds(word, value()?)?,
            "depth" => limits.depth = Some(depth(value()?)?),
            _ => {
                return Err(format!(
                    "go: unknown word {}; known are nodes, movetime, p1time, p2time, p1inc, p2inc, depth, infinite, perft",
                    quoted(word)
                ));
            }
        }
    }
    if clock != Clock::default() {
        limits.clock = Some(clock);
    }
    Ok(Command::Go(limits))
}

fn nodes(text: &str) -> Result<u64, String> {
    let number = text.parse().ok().filter(|&nodes| nodes >= 1);
    number.ok_or_else(|| format!("go nodes: {} is not a whole number from 1", quoted(text)))
}

fn depth(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("go depth: {} is not a whole number of plies", quoted(text)))
}

/// A time in milliseconds. Runners write negative ones when a clock has run out; that is no time.
fn milliseconds(word: &str, text: &str) -> Result<Duration, String> {
    let number: i64 =
        text.parse().map_err(|_| format!("go {word}: {} is not a whole number of milliseconds", quoted(text)))?;
    Ok(Duration::from_millis(number.max(0).unsigned_abs()))
}

fn query(words: &[&str]) -> Result<Command, String> {
    match words {
        ["gameover"] => Ok(Command::Query(Query::GameOver)),
        ["p1turn"] => Ok(Command::Query(Query::FirstToMove)),
        ["result"] => Ok(Command::Query(Query::Result)),
        ["fen"] => Ok(Command::Query(Query::Fen)),
        ["legal"] => Ok(Command::Query(Query::Legal)),
        ["planes"] => Ok(Command::Query(Query::Planes)),
        ["actions"] => Ok(Command::Query(Query::Actions)),
        _ => Err("query: expected query gameover, p1turn, result, fen, legal, planes or actions".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_with_spaces_in_the_fen() {
        assert_eq!(
            parse("position fen 3/3/3 x moves a1  b2"),
            Ok(Some(Command::Position {
                fen: Some("3/3/3 x".to_owned()),
                moves: vec!["a1".to_owned(), "b2".to_owned()]
            }))
        );
        assert_eq!(parse("  position\tstartpos moves "), Ok(Some(Command::Position { fen: None, moves: Vec::new() })));
        for bad in ["position", "position fen", "position fen moves a1", "position startpos a1", "position 3/3/3 x"] {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn limits() {
        let go = |text: &str| match parse(text) {
            Ok(Some(Command::Go(limits))) => limits,
            other => panic!("{text}: {other:?}"),
        };
        let ms = Duration::from_millis;
        assert_eq!(go("go"), Limits::default());
        assert_eq!(go("go infinite"), Limits { infinite: true, ..Limits::default() });
        assert_eq!(
            go("go nodes 12 movetime 0"),
            Limits { nodes: Some(12), movetime: Some(ms(0)), ..Limits::default() }
        );
        assert_eq!(go("go depth 3"), Limits { depth: Some(3), ..Limits::default() });
        let clock = Clock { left: [Some(ms(60_000)), Some(ms(0))], increment: [ms(0), ms(100)] };
        assert_eq!(
            go("go p1time 60000 p2time -3 p1inc 0 p2inc 100"),
            Limits { clock: Some(clock), ..Limits::default() }
        );
        assert_eq!(parse("go perft 3"), Ok(Some(Command::Perft(3))));
        for bad in [
            "go nodes",
            "go nodes 0",
            "go nodes -1",
            "go nodes x",
            "go nodes 99999999999999999999999",
            "go movetime 1.5",
            "go infinite infinite",
            "go depth x",
            "go perft",
            "go perft 101",
            "go perft -1",
            "go perft 1 2",
            "go fast",
        ] {
            let error = parse(bad).expect_err(bad);
            assert!(error.starts_with("go"), "{error}");
        }
    }

    #[test]
    fn options() {
        let set = |name: &str, value: Option<&str>| {
            Ok(Some(Command::SetOption { name: name.to_owned(), value: value.map(str::to_owned) }))
        };
        assert_eq!(parse("setoption name Clear Tree"), set("Clear Tree", None));
        assert_eq!(parse("setoption name net value a b.c"), set("net", Some("a b.c")));
        assert_eq!(parse("setoption name net value"), set("net", Some("")));
        assert!(parse("setoption net 3").is_err() && parse("setoption name value 3").is_err());
    }
}
