//! Laws of notation: round trips, and texts that are wrong.

use std::cmp::Ordering;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::{Broken, Checked, broken, ensure, position, spread, texts};
use crate::game::{EndReason, Game, legal_list};
use crate::util::rng::Stream;

/// Damaged copies of each text that are tried.
const DAMAGES: usize = 24;

/// Notation order: ascending text, where runs of digits compare as numbers (`a2` before `a10`).
pub fn notation_order(one: &str, other: &str) -> Ordering {
    let split = |text: &str| -> Vec<(Option<u64>, String)> {
        let mut parts: Vec<(Option<u64>, String)> = Vec::new();
        for sign in text.chars() {
            let digit = sign.to_digit(10).map(u64::from);
            match (digit, parts.last_mut()) {
                (Some(digit), Some((Some(number), _))) => *number = number.saturating_mul(10).saturating_add(digit),
                (Some(digit), _) => parts.push((Some(digit), String::new())),
                (None, _) => parts.push((None, sign.to_string())),
            }
        }
        parts
    };
    // A number (`Some`) would come after a sign (`None`); digits come before letters in text.
    let rank = |(number, sign): (Option<u64>, String)| (number.is_none(), number, sign);
    split(one).into_iter().map(rank).cmp(split(other).into_iter().map(rank))
}

pub(super) fn check<G: Game>(game: &G, visited: &[G::State], random: &mut Stream) -> Checked {
    for state in visited {
        round_trip(game, state)?;
    }
    let start = game.startpos();
    ensure!(
        game.parse_state(&game.state_text(&start)).as_ref() == Ok(&start),
        "the text of a start gives the start",
        "{}",
        game.state_text(&start)
    );
    for state in spread(visited, 300) {
        let text = game.state_text(state);
        for _ in 0..DAMAGES {
            damaged_state(game, &damage(&text, random), random)?;
        }
        if let Some(&action) = legal_list(game, state).first() {
            damaged_action(game, &damage(&game.action_text(action), random))?;
        }
    }
    Ok(())
}

/// The text of a state gives a state with the same text, mover and moves. It need not be an equal one: a text
/// does not carry the history that a game may need (for repetition), nor always the ply.
fn round_trip<G: Game>(game: &G, state: &G::State) -> Checked {
    let text = game.state_text(state);
    let parsed = match game.parse_state(&text) {
        Ok(parsed) => parsed,
        Err(error) => return broken("the text of a position can be read", format!("{text}: {error}")),
    };
    ensure!(
        game.state_text(&parsed) == text,
        "a position that was read is written the same",
        "{text} became {}",
        game.state_text(&parsed)
    );
    ensure!(game.to_move(&parsed) == game.to_move(state), "the text of a position keeps the mover", "{text}");
    let end = game.end(state);
    if end.is_none_or(|end| end.reason != EndReason::Repetition) {
        let (moves, again) = (legal_list(game, state), legal_list(game, &parsed));
        ensure!(
            moves == again,
            "the text of a position keeps the moves",
            "{text}: {} became {}",
            texts(game, &moves),
            texts(game, &again)
        );
        ensure!(game.end(&parsed) == end, "the text of a position keeps the end", "{text}");
    }
    Ok(())
}

/// Reading a damaged text is an error, or gives a position that keeps the laws and can be played to its end.
fn damaged_state<G: Game>(game: &G, text: &str, random: &mut Stream) -> Checked {
    let law = "no text makes reading a position panic";
    let Ok(parsed) = catch_unwind(AssertUnwindSafe(|| game.parse_state(text))) else {
        return broken(law, format!("{text:?}"));
    };
    let Ok(mut state) = parsed else {
        return Ok(());
    };
    ensure!(
        game.state_text(&state) == text,
        "a position that was read is written the same",
        "{text:?} became {:?}",
        game.state_text(&state)
    );
    position::check(game, &state).map_err(|Broken { law, detail }| {
        let detail = format!("{detail} (a position that parse_state made of the altered text {text:?})");
        Broken { law, detail }
    })?;
    while game.end(&state).is_none() {
        let legal = legal_list(game, &state);
        game.play(&mut state, legal[random.below(legal.len())]);
        ensure!(
            game.ply(&state) <= game.max_plies(),
            "no game is longer than max_plies",
            "from {text:?}, an altered text that parse_state takes, it reaches ply {}",
            game.ply(&state)
        );
    }
    Ok(())
}

fn damaged_action<G: Game>(game: &G, text: &str) -> Checked {
    match catch_unwind(AssertUnwindSafe(|| game.parse_action(text))) {
        Ok(Ok(action)) => ensure!(
            action.index() < game.action_count() && game.action_text(action) == text,
            "a move that was read is written the same",
            "{text:?} became {:?}",
            game.action_text(action)
        ),
        Ok(Err(_)) => {}
        Err(_) => return broken("no text makes reading a move panic", format!("{text:?}")),
    }
    Ok(())
}

/// `text` with one to three signs removed, doubled, exchanged or replaced, or cut off.
fn damage(text: &str, random: &mut Stream) -> String {
    const SIGNS: [char; 24] = [
        'x', 'o', 'w', 'b', 'a', 'Q', '0', '1', '2', '3', '4', '8', '9', '/', ' ', '-', '(', ')', ',', '\u{e9}',
        '\u{663}', '\0', '\n', 'z',
    ];
    let mut signs: Vec<char> = text.chars().collect();
    for _ in 0..1 + random.below(3) {
        let at = random.below(signs.len() + 1);
        match random.below(6) {
            0 if at < signs.len() => drop(signs.remove(at)),
            1 if at < signs.len() => signs.insert(at, signs[at]),
            2 if at + 1 < signs.len() => signs.swap(at, at + 1),
            3 if at < signs.len() => signs[at] = SIGNS[random.below(SIGNS.len())],
            // A sign of the text in another place is a likelier near miss than any other sign.
            4 if at < signs.len() => signs[at] = signs[random.below(signs.len())],
            5 if random.below(8) == 0 => signs.truncate(at),
            _ => signs.insert(at, SIGNS[random.below(SIGNS.len())]),
        }
    }
    signs.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_compare_as_numbers() {
        let sorted = ["1", "2", "10", "a1", "a2", "a9", "a10", "b1", "j10", "pass"];
        for (i, one) in sorted.iter().enumerate() {
            for (j, other) in sorted.iter().enumerate() {
                assert_eq!(notation_order(one, other), i.cmp(&j), "{one} {other}");
            }
        }
        assert_eq!(notation_order("g1f1", "g1g2"), Ordering::Less);
        assert_eq!(notation_order("a1a2", "a1off"), Ordering::Less);
    }
}
