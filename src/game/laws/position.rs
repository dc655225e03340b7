//! Laws of single positions: ends, move lists, encodings, keys.

use std::cmp::Ordering;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::{Checked, broken, encoding, ensure, notation_order, texts};
use crate::game::{Action, Game, Player, legal_list};
use crate::util::rng::{Stream, mix};

/// Ends and move lists.
pub(super) fn check<G: Game>(game: &G, state: &G::State) -> Checked {
    let place = || game.state_text(state);
    let legal = legal_list(game, state);
    let end = game.end(state);
    ensure!(
        end.is_some() == legal.is_empty(),
        "a game has ended exactly when there is no legal move",
        "{}: end {end:?}, moves {}",
        place(),
        texts(game, &legal)
    );
    let mut appended = vec![Action(u16::MAX)];
    game.legal(state, &mut appended);
    ensure!(
        appended[0] == Action(u16::MAX) && appended[1..] == legal,
        "legal moves are appended, the same each time",
        "{}",
        place()
    );
    let names: Vec<String> = legal.iter().map(|&action| game.action_text(action)).collect();
    for (action, name) in legal.iter().zip(&names) {
        ensure!(
            action.index() < game.action_count(),
            "actions are below the action count",
            "{}: {name} is {}, action_count is {}",
            place(),
            action.0,
            game.action_count()
        );
        let parsed = game.parse_action(name);
        ensure!(
            parsed.as_ref() == Ok(action),
            "the text of a move gives the move",
            "{}: {name} of {action:?} is read as {parsed:?}",
            place()
        );
    }
    ensure!(
        names.windows(2).all(|pair| notation_order(&pair[0], &pair[1]) == Ordering::Less),
        "legal moves are unique and in notation order",
        "{}: {}",
        place(),
        names.join(" ")
    );
    let planes = encoding(game, state);
    if let Some(at) = planes.iter().position(|number| !number.is_finite()) {
        return broken("encodings are finite", format!("{}: number {at} is {}", place(), planes[at]));
    }
    if end.is_some() {
        for viewer in Player::BOTH {
            let mut facts = vec![0.0; game.ending_shape().slots(game.plane_shape().cells())];
            game.encode_ending(state, viewer, &mut facts);
            let odd = facts.iter().position(|fact| ![0.0, 1.0].contains(fact));
            ensure!(
                odd.is_none(),
                "facts of an ending hold or not",
                "{}: slot {} is neither 0 nor 1",
                place(),
                odd.unwrap_or(0)
            );
        }
    }
    ensure!(game.key(state) == game.key(&state.clone()), "a copy has the same key", "{}", place());
    let drawn = game.draw(state);
    let is_text = |line: &str| line.chars().count() <= 80 && !line.contains(char::is_control);
    ensure!(
        drawn.ends_with('\n') && drawn.lines().all(is_text),
        "a drawing is lines of text, at most 80 signs each",
        "{}: {drawn:?}",
        place()
    );
    Ok(())
}

/// Equal keys exactly where encodings are equal, and the same moves there. Each position is taken as it is
/// and through a random symmetry.
pub(super) fn check_keys<G: Game>(game: &G, visited: &[G::State], random: &mut Stream) -> Checked {
    let mut by_key: HashMap<G::Key, (u128, G::State)> = HashMap::new();
    let mut by_encoding: HashMap<u128, G::State> = HashMap::new();
    for state in visited {
        let mapped = game.map_state(state, random.below(game.symmetry_count()));
        for state in [state, &mapped] {
            let (key, planes) = (game.key(state), digest(&encoding(game, state)));
            match by_key.entry(key) {
                Entry::Vacant(entry) => {
                    if let Some(other) = by_encoding.insert(planes, state.clone()) {
                        let pair = format!("{} and {}", game.state_text(state), game.state_text(&other));
                        return broken("positions of different keys have different encodings", pair);
                    }
                    entry.insert((planes, state.clone()));
                }
                Entry::Occupied(entry) => {
                    let (known, other) = entry.get();
                    let pair = || format!("{} and {}", game.state_text(state), game.state_text(other));
                    ensure!(*known == planes, "positions of equal keys have equal encodings", "{}", pair());
                    ensure!(
                        legal_list(game, state) == legal_list(game, other),
                        "positions of equal keys have equal moves",
                        "{}",
                        pair()
                    );
                }
            }
        }
    }
    Ok(())
}

/// 128 bits that stand for an encoding; two different ones practically never share them.
fn digest(planes: &[f32]) -> u128 {
    let (mut low, mut high) = (1, 2);
    for number in planes {
        // Both zeros are the same number.
        let bits = u64::from((number + 0.0).to_bits());
        low = mix(low ^ bits).wrapping_add(0x9e37_79b9_7f4a_7c15);
        high = mix(high ^ bits.rotate_left(32)).wrapping_add(0xd1b5_4a32_d192_ed03);
    }
    u128::from(low) | u128::from(high) << 64
}
