//! What the notations of square boards share: rows of cells as text, squares such as `c4`, the eight
//! symmetries, and a drawing.

use super::{Drawing, Game, Ink, Outcome, Player, TextError};

/// `text` in quotes for an error message, control characters escaped, cut when very long.
pub fn quoted(text: &str) -> String {
    const MOST: usize = 60;
    match text.char_indices().nth(MOST) {
        Some((end, _)) => format!("{:?}...", &text[..end]),
        None => format!("{text:?}"),
    }
}

/// Splits a position into its fields, which single spaces separate.
///
/// # Errors
/// When there are more or fewer fields than `names`.
pub fn fields<'t, const N: usize>(text: &'t str, names: [&str; N]) -> Result<[&'t str; N], TextError> {
    let parts: Vec<&str> = text.split(' ').collect();
    <[&str; N]>::try_from(parts).map_err(|parts| {
        TextError::new(format!(
            "position {}: expected {N} fields with single spaces between them ({}), found {}",
            quoted(text),
            names.join(", "),
            parts.len()
        ))
    })
}

/// Reads rows of cells joined by `/`, top row first. A cell is one of `symbols`; a run of empty cells is its
/// length as a decimal number.
///
/// The answer has `height * width` entries, row-major: `None` for an empty cell, else the place in `symbols`.
///
/// # Errors
/// Names the row that has a wrong length or an unknown sign. A run must be written as one number without
/// leading zeros, so that each board has only one form.
pub fn parse_rows(text: &str, height: usize, width: usize, symbols: &[char]) -> Result<Vec<Option<usize>>, TextError> {
    let rows: Vec<&str> = text.split('/').collect();
    if rows.len() != height {
        return Err(TextError::new(format!(
            "board {}: expected {height} rows with / between them, found {}",
            quoted(text),
            rows.len()
        )));
    }
    let mut cells = Vec::with_capacity(height * width);
    for (index, row) in rows.iter().enumerate() {
        let error = |what: String| TextError::new(format!("board, row {} {}: {what}", index + 1, quoted(row)));
        let start = cells.len();
        let mut chars = row.chars().peekable();
        while let Some(first) = chars.next() {
            if let Some(symbol) = symbols.iter().position(|&symbol| symbol == first) {
                cells.push(Some(symbol));
            } else if let Some(digit) = first.to_digit(10) {
                let mut run = digit as usize;
                while let Some(digit) = chars.peek().and_then(|next| next.to_digit(10)) {
                    run = (10 * run + digit as usize).min(10 * width);
                    chars.next();
                }
                if first == '0' || run > width {
                    return Err(error(format!(
                        "a run of empty cells is one number from 1 to {width} without leading zeros"
                    )));
                }
                cells.resize(cells.len() + run, None);
            } else {
                let allowed: Vec<String> = symbols.iter().map(char::to_string).collect();
                return Err(error(format!(
                    "sign {first:?}, expected {} or a number of empty cells",
                    allowed.join(", ")
                )));
            }
            if cells.len() - start > width {
                break;
            }
        }
        if cells.len() - start != width {
            let count =
                if cells.len() - start > width { "more".to_owned() } else { format!("{}", cells.len() - start) };
            return Err(error(format!("{count} cells, expected {width}")));
        }
    }
    Ok(cells)
}

/// Writes rows of cells as [`parse_rows`] reads them; `cell(row, column)` is the sign there.
pub fn rows_text(height: usize, width: usize, cell: impl Fn(usize, usize) -> Option<char>) -> String {
    let mut text = String::new();
    for row in 0..height {
        if row > 0 {
            text.push('/');
        }
        let mut run = 0;
        for column in 0..width {
            match cell(row, column) {
                None => run += 1,
                Some(sign) => {
                    if run > 0 {
                        text.push_str(&run.to_string());
                        run = 0;
                    }
                    text.push(sign);
                }
            }
        }
        if run > 0 {
            text.push_str(&run.to_string());
        }
    }
    text
}

/// Reads the side to move: `signs[0]` for the first player, `signs[1]` for the second.
///
/// # Errors
/// When it is neither.
pub fn parse_side(text: &str, signs: [char; 2]) -> Result<Player, TextError> {
    let is = |sign: char| text.chars().eq([sign]);
    match (is(signs[0]), is(signs[1])) {
        (true, _) => Ok(Player::First),
        (_, true) => Ok(Player::Second),
        _ => Err(TextError::new(format!("side to move {}: expected {} or {}", quoted(text), signs[0], signs[1]))),
    }
}

/// The square as text: column letter, then row number from 1.
pub fn square_text(column: usize, row: usize) -> String {
    format!("{}{}", letter(column), row + 1)
}

/// Reads a square of a board of `size` x `size` cells (at most 26) as (column, row), both from 0.
///
/// # Errors
/// When the text is no square of this board.
pub fn parse_square(text: &str, size: usize) -> Result<(usize, usize), TextError> {
    let mut chars = text.chars();
    let column = chars.next().filter(char::is_ascii_lowercase).map(|sign| sign as usize - 'a' as usize);
    let digits = chars.as_str();
    let canonical = digits.bytes().all(|b| b.is_ascii_digit()) && !digits.starts_with('0');
    match (column, digits.parse::<usize>()) {
        (Some(column), Ok(row)) if canonical && column < size && (1..=size).contains(&row) => Ok((column, row - 1)),
        _ => Err(TextError::new(format!(
            "move {}: expected a column letter a to {} and a row number 1 to {size}",
            quoted(text),
            letter(size - 1)
        ))),
    }
}

/// Number of symmetries of a square.
pub const SQUARE_SYMMETRIES: usize = 8;

/// Where symmetry `symmetry` of a square of `size` x `size` cells moves cell (`i`, `j`). Bit 2 of the
/// symmetry's number swaps the axes first, bit 0 then turns the first one round and bit 1 the second.
#[inline]
pub const fn map_square(symmetry: usize, size: usize, i: usize, j: usize) -> (usize, usize) {
    let (i, j) = if symmetry & 4 != 0 { (j, i) } else { (i, j) };
    (if symmetry & 1 != 0 { size - 1 - i } else { i }, if symmetry & 2 != 0 { size - 1 - j } else { j })
}

/// Draws a square board for a person: letters above, numbers at the left, `cell(column, row)` the sign of
/// each cell and what it is. With a `block` there is a line after every so many rows and columns. The cell `last`,
/// as (column, row), stands in brackets.
pub fn paint_square(
    size: usize,
    block: Option<usize>,
    last: Option<(usize, usize)>,
    cell: impl Fn(usize, usize) -> (Ink, char),
) -> Drawing {
    let is_border = |at: usize| at > 0 && block.is_some_and(|block| at.is_multiple_of(block));
    let mut out = Drawing::new();
    out.push(Ink::Frame, "   ");
    for column in 0..size {
        let gap = if is_border(column) { "   " } else { " " };
        out.push(Ink::Frame, format_args!("{gap}{}", letter(column)));
    }
    out.push(Ink::Frame, "\n");
    for row in 0..size {
        if is_border(row) {
            out.push(Ink::Frame, "   ");
            (0..size).for_each(|column| out.push(Ink::Frame, if is_border(column) { "-+--" } else { "--" }));
            out.push(Ink::Frame, "-\n");
        }
        out.push(Ink::Frame, format_args!("{:>2} ", row + 1));
        let cells = (0..size).map(|column| {
            let (ink, sign) = cell(column, row);
            Cell { ink, sign, is_last: last == Some((column, row)), border: is_border(column) }
        });
        paint_row(&mut out, cells);
    }
    out
}

/// A cell of a row that [`paint_row`] draws.
#[derive(Clone, Copy, Debug)]
pub struct Cell {
    /// What it is.
    pub ink: Ink,
    /// How it is drawn.
    pub sign: char,
    /// The last move was made here: it stands in brackets.
    pub is_last: bool,
    /// A line divides it from the cell before.
    pub border: bool,
}

/// Draws cells with a space, or a border, before each of them, and ends the line.
pub fn paint_row(out: &mut Drawing, cells: impl IntoIterator<Item = Cell>) {
    const SPACE: (Ink, &str) = (Ink::Frame, " ");
    const CLOSE: (Ink, &str) = (Ink::Mark, "]");
    let mut after_last = false;
    for Cell { ink, sign, is_last, border } in cells {
        let before = if after_last { CLOSE } else { SPACE };
        if border {
            out.push(before.0, before.1);
            out.push(Ink::Frame, "|");
        }
        let (gap, text) = match (is_last, border) {
            (true, _) => (Ink::Mark, "["),
            (false, true) => SPACE,
            (false, false) => before,
        };
        out.push(gap, text);
        out.push(ink, sign);
        after_last = is_last;
    }
    if after_last {
        out.push(CLOSE.0, CLOSE.1);
    }
    out.push(Ink::Frame, "\n");
}

/// Checks the numbers of stones in a game where players take turns and each move adds one stone.
///
/// # Errors
/// When `counts` (of x, the first player, and of o) do not fit the side to move.
pub fn check_counts(counts: [u32; 2], to_move: Player) -> Result<(), TextError> {
    let [x, o] = counts;
    match to_move {
        Player::First if x == o => Ok(()),
        Player::Second if x == o + 1 => Ok(()),
        Player::First => {
            Err(TextError::new(format!("board: {x} x and {o} o, but with x to move there are as many x as o")))
        }
        Player::Second => {
            Err(TextError::new(format!("board: {x} x and {o} o, but with o to move there is one x more than o")))
        }
    }
}

/// The line under a drawing: who is to move, or how the game ended.
pub fn caption<G: Game>(game: &G, state: &G::State) -> Drawing {
    let name = |player: Player| Drawing::new().with(Ink::Piece(player), game.player_names()[player.index()]);
    match game.end(state).map(|end| end.outcome) {
        None => name(game.to_move(state)).with(Ink::Text, " to move\n"),
        Some(Outcome::Win(player)) => name(player).with(Ink::Text, " has won\n"),
        Some(Outcome::Draw) => "drawn\n".into(),
    }
}

/// The letter of a column below 26.
fn letter(column: usize) -> char {
    char::from(b'a' + column as u8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_round_trip_and_errors_name_the_row() {
        let cells = parse_rows("x1oo/4/10/o3", 4, 4, &['x', 'o']);
        assert_eq!(
            cells.unwrap_err().to_string(),
            "board, row 3 \"10\": a run of empty cells is one number from 1 to 4 without leading zeros"
        );
        let cells = parse_rows("x1oo/4/1o2/o3", 4, 4, &['x', 'o']).unwrap();
        assert_eq!(rows_text(4, 4, |r, c| cells[4 * r + c].map(|s| ['x', 'o'][s])), "x1oo/4/1o2/o3");
        for (text, error) in [
            ("4/4", "board \"4/4\": expected 4 rows with / between them, found 2"),
            ("4/4/4/3", "board, row 4 \"3\": 3 cells, expected 4"),
            ("4/4/4xx/4", "board, row 3 \"4xx\": more cells, expected 4"),
            ("4/4//4", "board, row 3 \"\": 0 cells, expected 4"),
            ("4/4/22/4", "board, row 3 \"22\": a run of empty cells is one number from 1 to 4 without leading zeros"),
            ("04/4/4/4", "board, row 1 \"04\": a run of empty cells is one number from 1 to 4 without leading zeros"),
            ("4/3z/4/4", "board, row 2 \"3z\": sign 'z', expected x, o or a number of empty cells"),
        ] {
            assert_eq!(parse_rows(text, 4, 4, &['x', 'o']).unwrap_err().to_string(), error);
        }
    }

    #[test]
    fn squares_have_one_form() {
        assert_eq!(parse_square("j10", 10), Ok((9, 9)));
        assert_eq!(square_text(9, 9), "j10");
        for text in
            ["", "a", "a0", "a01", "a+1", "A1", "i1", "a9", "a1 ", "1a", "a\u{661}", "\u{e4}1", "a99999999999999999999"]
        {
            assert!(parse_square(text, 8).is_err(), "{text:?}");
        }
    }

    #[test]
    fn the_symmetries_are_eight_different_bijections() {
        let images: std::collections::BTreeSet<Vec<(usize, usize)>> =
            (0..SQUARE_SYMMETRIES).map(|s| (0..9).map(|cell| map_square(s, 3, cell / 3, cell % 3)).collect()).collect();
        assert_eq!(images.len(), 8);
        for image in images {
            assert_eq!(image.into_iter().collect::<std::collections::BTreeSet<_>>().len(), 9);
        }
    }

    #[test]
    fn the_last_move_stands_in_brackets_wherever_it_is() {
        let board = |last| paint_square(4, Some(2), Some(last), |_, _| (Ink::Frame, '.')).to_string();
        let row = |last| board(last).lines().nth(1).unwrap().to_owned();
        assert_eq!(row((0, 0)), " 1 [.]. | . .");
        assert_eq!(row((1, 0)), " 1  .[.]| . .");
        assert_eq!(row((2, 0)), " 1  . . |[.].");
        assert_eq!(row((3, 0)), " 1  . . | .[.]");
        assert_eq!(row((3, 1)), " 1  . . | . .");
        assert_eq!(board((3, 3)).lines().nth(3), Some("   -----+-----"));
    }

    #[test]
    fn long_text_is_cut() {
        assert_eq!(quoted("a\nb"), "\"a\\nb\"");
        assert_eq!(quoted(&"\u{e4}".repeat(100)).chars().count(), 65);
    }
}
