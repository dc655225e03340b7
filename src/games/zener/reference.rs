//! Zener written down as plainly as the rules are told: stacks as lists of letters, moves as texts. Slow,
//! and independent of everything in this folder; tests compare the real game with it.

use std::collections::BTreeMap;

/// A position in the plainest form.
#[derive(Clone, Debug)]
pub struct Plain {
    /// Rows A..G, columns 1..5, each stack from bottom to top; upper case is white.
    pub cells: Vec<Vec<Vec<char>>>,
    pub white: bool,
    pub last_of_opponent: char,
    pub just_moved: char,
    pub plies: usize,
    pub max_plies: usize,
    /// "none", "p1win", "p2win" or "draw".
    pub result: &'static str,
    /// How often each position has stood, by its fen without the number of moves.
    pub seen: BTreeMap<String, usize>,
}

impl Plain {
    pub fn start(max_plies: usize) -> Self {
        let mut cells = vec![vec![Vec::new(); 5]; 7];
        for (column, letter) in "sqwxc".chars().enumerate() {
            cells[0][column] = vec![letter];
        }
        for (column, letter) in "CXWQS".chars().enumerate() {
            cells[6][column] = vec![letter];
        }
        let mut plain = Self {
            cells,
            white: true,
            last_of_opponent: '-',
            just_moved: '-',
            plies: 0,
            max_plies,
            result: "none",
            seen: BTreeMap::new(),
        };
        plain.seen.insert(plain.position(), 1);
        plain
    }

    /// The fen without the number of moves.
    pub fn position(&self) -> String {
        let rows: Vec<String> = self
            .cells
            .iter()
            .map(|row| {
                let cells: String = row
                    .iter()
                    .map(|stack| match stack.len() {
                        0 => "1".to_owned(),
                        1 => stack[0].to_string(),
                        _ => format!("({})", stack.iter().collect::<String>()),
                    })
                    .collect();
                // Runs of ones become their length; longest first.
                (2..=5).rev().fold(cells, |text, run| text.replace(&"1".repeat(run), &run.to_string()))
            })
            .collect();
        let side = if self.white { 'w' } else { 'b' };
        format!("{} {side} {} {}", rows.join("/"), self.last_of_opponent, self.just_moved)
    }

    pub fn fen(&self) -> String {
        format!("{} {}", self.position(), self.plies)
    }

    fn free(&self, white: bool) -> Vec<(usize, usize, char)> {
        let mut out = Vec::new();
        for row in 0..7 {
            for column in 0..5 {
                if let Some(&top) = self.cells[row][column].last()
                    && top.is_uppercase() == white
                {
                    out.push((row, column, top.to_ascii_lowercase()));
                }
            }
        }
        out
    }

    /// Legal moves, sorted.
    pub fn legal(&self) -> Vec<String> {
        if self.result != "none" {
            return Vec::new();
        }
        let free = self.free(self.white);
        let compulsory: Vec<_> = free.iter().copied().filter(|piece| piece.2 == self.last_of_opponent).collect();
        let may = if compulsory.is_empty() {
            free.into_iter().filter(|piece| piece.2 != self.just_moved).collect()
        } else {
            compulsory
        };
        let name = |row: i32, column: i32| format!("{}{}", (b'a' + row as u8) as char, column + 1);
        let mut out = Vec::new();
        for (row, column, _) in may {
            let (row, column) = (row as i32, column as i32);
            for (down, right) in [(-1, 0), (1, 0), (0, -1), (0, 1)] {
                let to = (row + down, column + right);
                if (0..7).contains(&to.0) && (0..5).contains(&to.1) {
                    out.push(name(row, column) + &name(to.0, to.1));
                } else if to.0 == if self.white { -1 } else { 7 } {
                    out.push(name(row, column) + "off");
                }
            }
        }
        out.sort();
        out
    }

    pub fn play(&mut self, text: &str) {
        let bytes = text.as_bytes();
        let (row, column) = (usize::from(bytes[0] - b'a'), usize::from(bytes[1] - b'1'));
        let piece = self.cells[row][column].pop().expect("a piece to move");
        self.plies += 1;
        let win = if self.white { "p1win" } else { "p2win" };
        if &text[2..] == "off" {
            self.result = win;
            return;
        }
        self.cells[usize::from(bytes[2] - b'a')][usize::from(bytes[3] - b'1')].push(piece);
        if self.free(!self.white).is_empty() {
            self.result = win;
            return;
        }
        let symbol = piece.to_ascii_lowercase();
        let was_compulsory = symbol == self.last_of_opponent;
        let others_free = self.free(self.white).iter().any(|piece| piece.2 != symbol);
        if was_compulsory && others_free {
            self.just_moved = symbol;
            self.last_of_opponent = '-';
        } else {
            self.white = !self.white;
            self.last_of_opponent = symbol;
            self.just_moved = '-';
        }
        let count = self.seen.entry(self.position()).or_insert(0);
        *count += 1;
        if *count >= 3 || self.plies >= self.max_plies {
            self.result = "draw";
        }
    }
}
