//! Laws of symmetries: they form a group, and all that a game says about a position follows them.

use std::collections::HashMap;

use super::{Checked, encoding, ensure, spread, texts};
use crate::game::{Action, Game, legal_list};
use crate::util::rng::{Stream, mix};

/// Symmetries are all checked on each position up to this many, else so many random ones.
const EACH: usize = 8;
/// Pairs of symmetries that are composed, at most.
const PAIRS: usize = 4096;

pub(super) fn check<G: Game>(game: &G, visited: &[G::State], random: &mut Stream) -> Checked {
    ensure!(game.symmetry_count() >= 1, "there is a symmetry, the identity", "symmetry_count is 0");
    bijections(game)?;
    group(game, visited, random)?;
    for state in spread(visited, 2000) {
        for symmetry in some_symmetries(game, random) {
            commutes(game, state, symmetry, random)?;
        }
    }
    for symmetry in some_symmetries(game, random) {
        encodings(game, visited, symmetry)?;
    }
    Ok(())
}

fn some_symmetries<G: Game>(game: &G, random: &mut Stream) -> Vec<usize> {
    match game.symmetry_count() {
        count if count <= EACH => (0..count).collect(),
        count => (0..EACH).map(|_| random.below(count)).collect(),
    }
}

fn mapped_actions<G: Game>(game: &G, symmetry: usize) -> Vec<Action> {
    (0..game.action_count()).map(|index| game.map_action(Action(index as u16), symmetry)).collect()
}

fn bijections<G: Game>(game: &G) -> Checked {
    for symmetry in 0..game.symmetry_count() {
        let mut images = mapped_actions(game, symmetry);
        if symmetry == 0 {
            let is_identity = images.iter().enumerate().all(|(index, action)| action.index() == index);
            ensure!(is_identity, "symmetry 0 leaves every action as it is", "{images:?}");
        }
        images.sort();
        let is_bijection = images.iter().enumerate().all(|(index, action)| action.index() == index);
        ensure!(is_bijection, "a symmetry maps the actions one to one", "symmetry {symmetry} gives {images:?}");
    }
    Ok(())
}

/// Two symmetries one after the other are again one, on positions and actions alike. As these are finitely
/// many bijections, they then form a group.
fn group<G: Game>(game: &G, visited: &[G::State], random: &mut Stream) -> Checked {
    let samples: Vec<&G::State> = spread(visited, 4).collect();
    let images = |of: &[G::State], symmetry| -> Vec<G::State> {
        of.iter().map(|state| game.map_state(state, symmetry)).collect()
    };
    let originals: Vec<G::State> = samples.into_iter().cloned().collect();
    let count = game.symmetry_count();
    let each: Vec<(Vec<G::State>, Vec<Action>)> =
        (0..count).map(|symmetry| (images(&originals, symmetry), mapped_actions(game, symmetry))).collect();
    let mut known: HashMap<(&[G::State], &[Action]), usize> = HashMap::new();
    for (symmetry, (states, actions)) in each.iter().enumerate() {
        known.entry((states, actions)).or_insert(symmetry);
    }
    ensure!(each[0].0 == originals, "symmetry 0 leaves every position as it is", "{}", game.state_text(&each[0].0[0]));
    let pairs: Vec<(usize, usize)> = if count * count <= PAIRS {
        (0..count * count).map(|index| (index / count, index % count)).collect()
    } else {
        (0..PAIRS).map(|_| (random.below(count), random.below(count))).collect()
    };
    for (first, second) in pairs {
        let states = images(&each[first].0, second);
        let actions: Vec<Action> = each[first].1.iter().map(|&action| game.map_action(action, second)).collect();
        ensure!(
            known.contains_key(&(states.as_slice(), actions.as_slice())),
            "two symmetries one after the other are a symmetry",
            "{first}, then {second}, of {}",
            game.state_text(&originals[0])
        );
    }
    Ok(())
}

/// What a game says about the image of a position is the image of what it says about the position.
fn commutes<G: Game>(game: &G, state: &G::State, symmetry: usize, random: &mut Stream) -> Checked {
    let place = || format!("{} through symmetry {symmetry}", game.state_text(state));
    let mapped = game.map_state(state, symmetry);
    ensure!(game.end(&mapped) == game.end(state), "a symmetry keeps the end", "{}", place());
    ensure!(game.to_move(&mapped) == game.to_move(state), "a symmetry keeps the mover", "{}", place());
    ensure!(game.ply(&mapped) == game.ply(state), "a symmetry keeps the ply", "{}", place());
    let legal = legal_list(game, state);
    let mut images: Vec<Action> = legal.iter().map(|&action| game.map_action(action, symmetry)).collect();
    images.sort();
    let mut found = legal_list(game, &mapped);
    found.sort();
    ensure!(
        images == found,
        "the moves of a mapped position are the mapped moves",
        "{}: {} against {}",
        place(),
        texts(game, &found),
        texts(game, &images)
    );
    for _ in 0..legal.len().min(6) {
        let action = legal[random.below(legal.len())];
        let mut played = state.clone();
        game.play(&mut played, action);
        let mut other = mapped.clone();
        game.play(&mut other, game.map_action(action, symmetry));
        ensure!(
            game.map_state(&played, symmetry) == other,
            "playing and mapping give the same in either order",
            "{} with {}",
            place(),
            game.action_text(action)
        );
        let (key, other_key) = (game.key(&game.map_state(&played, symmetry)), game.key(&other));
        ensure!(key == other_key, "equal positions have equal keys", "{}: {key:?} and {other_key:?}", place());
    }
    Ok(())
}

/// The encoding of a mapped position is that of the position with its numbers in other places, always the same
/// ones. Where the symmetry moves the actions of the board's cells, whole planes follow it likewise.
///
/// Each place of the encoding is followed over all positions; the values it takes are condensed to one number.
/// There is such a rearrangement exactly when both sides have the same numbers.
fn encodings<G: Game>(game: &G, visited: &[G::State], symmetry: usize) -> Checked {
    let shape = game.plane_shape();
    let (mut plain, mut mapped) = (vec![0u64; shape.len()], vec![0u64; shape.len()]);
    for state in spread(visited, 1500) {
        for (columns, state) in [(&mut plain, state.clone()), (&mut mapped, game.map_state(state, symmetry))] {
            for (column, number) in columns.iter_mut().zip(encoding(game, &state)) {
                *column = mix(column.wrapping_add(0x9e37_79b9_7f4a_7c15) ^ u64::from((number + 0.0).to_bits()));
            }
        }
    }
    let cells = shape.cells();
    let in_order = |mut numbers: Vec<u64>| {
        numbers.sort();
        numbers
    };
    ensure!(
        in_order(plain.clone()) == in_order(mapped.clone()),
        "the encoding of a mapped position is a fixed rearrangement",
        "symmetry {symmetry}"
    );
    if let Some(moved) = cell_map(game, symmetry) {
        let condense = |plane: &[u64], at: &dyn Fn(usize) -> usize| {
            (0..cells).fold(0, |sum: u64, cell| mix(sum.wrapping_add(1) ^ plane[at(cell)]))
        };
        let plain = plain.chunks_exact(cells).map(|plane| condense(plane, &|cell| cell)).collect();
        let mapped = mapped.chunks_exact(cells).map(|plane| condense(plane, &|cell| moved[cell])).collect();
        ensure!(
            in_order(plain) == in_order(mapped),
            "the planes of an encoding follow a symmetry as the actions do",
            "symmetry {symmetry}"
        );
    }
    Ok(())
}

/// Where the symmetry moves each cell, as the actions of the cells tell; `None` when they tell no such thing.
fn cell_map<G: Game>(game: &G, symmetry: usize) -> Option<Vec<usize>> {
    let cells = game.plane_shape().cells();
    let on_board = game.policy_shape().planes * cells;
    let mut moved = vec![None; cells];
    for index in 0..on_board {
        let image = game.map_action(Action(index as u16), symmetry).index();
        let cell = &mut moved[index % cells];
        if image >= on_board || cell.is_some_and(|known| known != image % cells) {
            return None;
        }
        *cell = Some(image % cells);
    }
    moved.into_iter().collect()
}
