//! Moves and positions as text.

use crate::game::grid::{fields, parse_side, quoted};
use crate::game::{Action, TextError};

use super::board::{Board, OFF, Piece, piece};
use super::state::{Finish, State, Turn};
use super::tables::{CELLS, COLUMNS, LETTERS, PLANES, ROWS, SYMBOL_NAMES, SYMBOLS, exit_row, target};

/// What white and black are called.
pub(super) const SIDE_NAMES: [&str; 2] = ["white", "black"];

/// A square as text: `a1` is the top-left one.
fn square_text(square: usize) -> String {
    format!("{}{}", char::from(b'a' + (square / COLUMNS) as u8), square % COLUMNS + 1)
}

/// The square that `text` begins with, and the rest.
fn parse_square(text: &str) -> Option<(usize, &str)> {
    let (letter, digit) = (*text.as_bytes().first()?, *text.as_bytes().get(1)?);
    let row = usize::from(letter.checked_sub(b'a')?);
    let column = usize::from(digit.checked_sub(b'1')?);
    (row < ROWS && column < COLUMNS).then(|| (row * COLUMNS + column, &text[2..]))
}

/// A move as text; slots that are no move of any position get a text that no move has.
pub(super) fn action_text(action: Action) -> String {
    let (plane, from) = (action.index() / CELLS, action.index() % CELLS);
    match target(from, plane) {
        Some(OFF) => format!("{}off", square_text(from)),
        Some(to) => format!("{}{}", square_text(from), square_text(usize::from(to))),
        None => format!("{}-", square_text(from)),
    }
}

/// The action with this text.
pub(super) fn parse_action(text: &str) -> Result<Action, TextError> {
    let fail = |what: &str| {
        Err(TextError::new(format!(
            "move {}: {what}; a move is its from-square and to-square like g3f3, or like a3off to leave \
             the board (rows a to g from top to bottom, columns 1 to 5)",
            quoted(text)
        )))
    };
    let Some((from, rest)) = parse_square(text) else {
        return fail("it does not begin with a square");
    };
    let to = match (rest, parse_square(rest)) {
        ("off", _) => OFF,
        (_, Some((to, ""))) => to as u8,
        _ => return fail("after the from-square stands neither a square nor \"off\""),
    };
    match (0..PLANES).find(|&plane| target(from, plane) == Some(to)) {
        Some(plane) => Ok(Action((plane * CELLS + from) as u16)),
        None if to == OFF => fail("a piece leaves the board only from row a or row g"),
        None => fail("a piece moves one square up, down, left or right"),
    }
}

/// The letter of a piece: upper case for white.
pub(super) fn letter(piece: Piece) -> char {
    let letter = LETTERS[usize::from(piece & 7)];
    if piece >> 3 == 0 { letter.to_ascii_uppercase() } else { letter }
}

/// The piece with this letter.
fn parse_letter(letter: char) -> Option<Piece> {
    let symbol = LETTERS.iter().position(|&known| known == letter.to_ascii_lowercase())?;
    Some(piece(usize::from(letter.is_ascii_lowercase()), symbol))
}

/// The pieces of a square from bottom to top.
fn stack_text(board: &Board, square: usize) -> String {
    let mut pieces: Vec<char> = board.stack(square as u8).map(letter).collect();
    pieces.reverse();
    pieces.into_iter().collect()
}

/// The position as a fen.
pub(super) fn state_text(state: &State) -> String {
    let mut out = String::new();
    for row in 0..ROWS {
        if row > 0 {
            out.push('/');
        }
        let mut empty = 0;
        for column in 0..COLUMNS {
            let stack = stack_text(&state.board, row * COLUMNS + column);
            if stack.is_empty() {
                empty += 1;
                continue;
            }
            if empty > 0 {
                out.push_str(&empty.to_string());
                empty = 0;
            }
            if stack.len() == 1 {
                out.push_str(&stack);
            } else {
                out.push_str(&format!("({stack})"));
            }
        }
        if empty > 0 {
            out.push_str(&empty.to_string());
        }
    }
    let (last, moved) = match state.turn.get() {
        Turn::Opening => ('-', '-'),
        Turn::Compulsory(symbol) => (LETTERS[usize::from(symbol)], '-'),
        Turn::Free(symbol) => ('-', LETTERS[usize::from(symbol)]),
    };
    let side = if state.side == 0 { 'w' } else { 'b' };
    format!("{out} {side} {last} {moved} {}", state.ply)
}

/// The position of a fen. Checks field by field, then whether the fields fit each other.
pub(super) fn parse_state(text: &str, max_plies: u16) -> Result<State, TextError> {
    let names = ["rows", "side to move", "symbol the opponent moved last", "symbol just moved", "moves made"];
    let [rows, side, last, moved, plies] = fields(text, names)?;
    let board = parse_rows(rows)?;
    let side = parse_side(side, ['w', 'b'])?.index() as u8;
    let last = parse_symbol(last, "symbol the opponent moved last")?;
    let moved = parse_symbol(moved, "symbol just moved")?;
    let turn = match (last, moved) {
        (None, None) => Turn::Opening,
        (Some(symbol), None) => Turn::Compulsory(symbol),
        (None, Some(symbol)) => Turn::Free(symbol),
        (Some(_), Some(_)) => {
            return Err(TextError::new(
                "symbol just moved: it must be - where the symbol the opponent moved last is given (that one \
                 stands at the first move of a turn, this one at the second)",
            ));
        }
    };
    let canonical = !plies.is_empty()
        && plies.bytes().all(|byte| byte.is_ascii_digit())
        && (plies == "0" || !plies.starts_with('0'));
    let ply = plies.parse::<u16>().ok().filter(|&ply| canonical && ply <= max_plies);
    let Some(ply) = ply else {
        return Err(TextError::new(format!(
            "moves made: {} is not a whole number from 0 to {max_plies} (max_plies), without leading zeros",
            quoted(plies)
        )));
    };
    let finish = judge(&board, side, turn, ply)?;
    Ok(State::new(board, side, turn, ply, finish, max_plies))
}

/// A field that holds a symbol or `-`.
fn parse_symbol(text: &str, field: &str) -> Result<Option<u8>, TextError> {
    let mut letters = text.chars();
    match (letters.next(), letters.next()) {
        (Some('-'), None) => Ok(None),
        (Some(letter), None) if LETTERS.contains(&letter) => {
            Ok(LETTERS.iter().position(|&known| known == letter).map(|symbol| symbol as u8))
        }
        _ => Err(TextError::new(format!("{field}: {} is not one of w, x, c, q, s or -", quoted(text)))),
    }
}

/// The stacks of the rows field; a piece may be missing, none stands twice.
fn parse_rows(text: &str) -> Result<Board, TextError> {
    let rows: Vec<&str> = text.split('/').collect();
    if rows.len() != ROWS {
        return Err(TextError::new(format!(
            "rows: there are {} of them, not {ROWS} (A to G, joined by /)",
            rows.len()
        )));
    }
    let mut stacks: [Vec<Piece>; CELLS] = std::array::from_fn(|_| Vec::new());
    let mut seen = [false; 16];
    for (row, text) in rows.into_iter().enumerate() {
        let name = char::from(b'A' + row as u8);
        let fail = |what: String| Err(TextError::new(format!("rows: row {name} ({}): {what}", quoted(text))));
        let mut put = |letter: char, stack: Option<&mut Vec<Piece>>| {
            let Some(piece) = parse_letter(letter) else {
                return Err(format!("{letter:?} is none of the letters wxcqs or WXCQS, the digits 1 to 5, ( and )"));
            };
            if std::mem::replace(&mut seen[usize::from(piece)], true) {
                return Err(format!("the piece {letter} stands on the board twice"));
            }
            stack.ok_or_else(|| format!("it has more than {COLUMNS} cells"))?.push(piece);
            Ok(())
        };
        let mut column = 0;
        let mut after_digit = false;
        let mut letters = text.chars();
        while let Some(letter) = letters.next() {
            let cell = (column < COLUMNS).then_some(row * COLUMNS + column);
            match letter {
                '1'..='5' if after_digit => {
                    return fail("two runs of empty cells follow one another; write them as one".to_owned());
                }
                '1'..='5' => column += usize::from(letter as u8 - b'0'),
                '(' => {
                    let mut height = 0;
                    loop {
                        match letters.next() {
                            Some(')') if height >= 2 => break,
                            Some(')') => {
                                return fail("a stack in parentheses has at least two pieces".to_owned());
                            }
                            Some(letter) => {
                                let stack = cell.map(|cell| &mut stacks[cell]);
                                if let Err(what) = put(letter, stack) {
                                    return fail(what);
                                }
                                height += 1;
                            }
                            None => return fail("a stack is not closed by )".to_owned()),
                        }
                    }
                    column += 1;
                }
                letter => {
                    if let Err(what) = put(letter, cell.map(|cell| &mut stacks[cell])) {
                        return fail(what);
                    }
                    column += 1;
                }
            }
            after_digit = letter.is_ascii_digit();
            if column > COLUMNS {
                return fail(format!("it has more than {COLUMNS} cells"));
            }
        }
        if column < COLUMNS {
            return fail(format!("it has {column} cells, not {COLUMNS}"));
        }
    }
    Ok(Board::from_stacks(&stacks))
}

/// Whether the fields fit each other, and whether the stacks say that the game is won.
///
/// A won game is written with the winner to move and the turn as it was before the winning move, since that
/// move ends the turn for nobody. A piece is missing exactly when it won by leaving the board. Also
/// accepted is a position whose player to move has no free piece and has thereby lost.
fn judge(board: &Board, side: u8, turn: Turn, ply: u16) -> Result<Finish, TextError> {
    let (own, other) = (usize::from(side), usize::from(side ^ 1));
    let name = |side: usize, symbol: usize| format!("{} {}", SIDE_NAMES[side], SYMBOL_NAMES[symbol]);
    let free = |side: usize, symbol: u8| board.is_free(side, usize::from(symbol));
    let missing: Vec<(usize, usize)> = (0..2)
        .flat_map(|side| (0..SYMBOLS).map(move |symbol| (side, symbol)))
        .filter(|&(side, symbol)| board.square(side, symbol) == OFF)
        .collect();
    let finish = match missing.as_slice() {
        [] if board.free(other) == 0 => Finish::Won(side),
        [] if board.free(own) == 0 && matches!(turn, Turn::Compulsory(_)) => Finish::Won(side ^ 1),
        [] if board.free(own) == 0 => {
            return Err(TextError::new(format!(
                "rows: {} is to move in the middle of a turn, but has no free piece",
                SIDE_NAMES[own]
            )));
        }
        [] => Finish::No,
        &[(owner, symbol)] => {
            if owner != own || board.free(other) == 0 {
                return Err(TextError::new(format!(
                    "rows: the {} is missing; a piece is missing only where it has just won by leaving the \
                     board, which is written with its owner to move",
                    name(owner, symbol)
                )));
            }
            let left_as = match turn {
                // Another symbol left because this one was blocked, perhaps beneath the one that left.
                Turn::Compulsory(must) => {
                    let row = usize::from(board.square(own, usize::from(must))) / COLUMNS;
                    usize::from(must) == symbol || !free(own, must) || row == exit_row(own)
                }
                Turn::Free(moved) => usize::from(moved) != symbol,
                Turn::Opening => true,
            };
            if !left_as {
                return Err(TextError::new(format!(
                    "rows: the {} is missing, but by the symbol fields it could not have moved last",
                    name(owner, symbol)
                )));
            }
            Finish::Won(side)
        }
        &[first, second, ..] => {
            return Err(TextError::new(format!(
                "rows: {} pieces are missing, among them the {} and the {}",
                missing.len(),
                name(first.0, first.1),
                name(second.0, second.1)
            )));
        }
    };
    let won = finish != Finish::No;
    let blocked = won && board.free(other) == 0;
    match turn {
        Turn::Opening if side != 0 => {
            return Err(TextError::new(
                "symbol the opponent moved last: both symbol fields are - only before white's first move, but \
                 black is to move",
            ));
        }
        // The first move can have won, from a fen where a piece stood ready to.
        Turn::Opening if ply != u16::from(won) => {
            return Err(TextError::new(format!(
                "moves made: both symbol fields are - only before the first move, but {ply} moves are made{}",
                if won { " and the game is won" } else { "" }
            )));
        }
        Turn::Compulsory(_) | Turn::Free(_) if ply == 0 => {
            return Err(TextError::new("moves made: it is 0, but a symbol field says that a piece has moved"));
        }
        // Only the move that blocks the opponent's last free piece covers the one moved before.
        Turn::Compulsory(symbol) if !blocked && !free(other, symbol) => {
            return Err(TextError::new(format!(
                "symbol the opponent moved last: the {} cannot have moved last, it is not on top of its stack",
                name(other, usize::from(symbol))
            )));
        }
        Turn::Free(symbol) if !free(own, symbol) => {
            return Err(TextError::new(format!(
                "symbol just moved: the {} cannot have just moved, it is not on top of its stack",
                name(own, usize::from(symbol))
            )));
        }
        Turn::Free(symbol) if missing.is_empty() && board.free(own) == 1 << symbol => {
            return Err(TextError::new(format!(
                "symbol just moved: no piece but the {} is free, so there is no free move",
                name(own, usize::from(symbol))
            )));
        }
        _ => {}
    }
    Ok(finish)
}
