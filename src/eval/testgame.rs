//! A small game for tests: players move twice in a row, and every symmetry of the square holds.

use crate::game::{Action, Drawing, End, EndReason, Game, Outcome, PlaneShape, Player, PolicyShape, TextError};
use crate::util::rng::Stream;

/// Three in a row on 4x4: the first player sets one stone, then each sets two in turn.
#[derive(Clone, Debug)]
pub struct Pairs;

/// Stones of the first and of the second player, bit `4 * row + column`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stones(pub [u16; 2]);

fn map_cell(cell: usize, symmetry: usize) -> usize {
    let (mut row, mut column) = (cell / 4, cell % 4);
    if symmetry & 1 != 0 {
        column = 3 - column;
    }
    if symmetry & 2 != 0 {
        row = 3 - row;
    }
    if symmetry & 4 != 0 {
        (row, column) = (column, row);
    }
    4 * row + column
}

fn has_line(stones: u16) -> bool {
    let at = |row: i32, column: i32| {
        (0..4).contains(&row) && (0..4).contains(&column) && stones >> (4 * row + column) & 1 == 1
    };
    (0..16).any(|cell| {
        let (row, column) = (cell / 4, cell % 4);
        [(0, 1), (1, 0), (1, 1), (1, -1)].iter().any(|(r, c)| (0..3).all(|i| at(row + i * r, column + i * c)))
    })
}

impl Game for Pairs {
    type State = Stones;
    type Key = [u16; 2];

    const NAME: &'static str = "pairs";
    const ENCODING_VERSION: u32 = 1;
    const RULES_VERSION: u32 = 1;

    fn from_options(_: &[(String, String)]) -> Result<Self, TextError> {
        Ok(Self)
    }

    fn action_count(&self) -> usize {
        16
    }

    fn policy_shape(&self) -> PolicyShape {
        PolicyShape { planes: 1, flat: 0 }
    }

    fn plane_shape(&self) -> PlaneShape {
        PlaneShape { channels: 3, height: 4, width: 4 }
    }

    fn plane_names(&self) -> Vec<String> {
        ["own stones", "their stones", "one more stone to set after this one"].map(String::from).to_vec()
    }

    fn max_plies(&self) -> usize {
        16
    }

    fn start(&self, _: &mut Stream) -> Stones {
        Stones([0, 0])
    }

    fn to_move(&self, state: &Stones) -> Player {
        // Plies 0 | 1 2 | 3 4 | ...
        if self.ply(state).div_ceil(2).is_multiple_of(2) { Player::First } else { Player::Second }
    }

    fn end(&self, state: &Stones) -> Option<End> {
        let winner = Player::BOTH.into_iter().find(|player| has_line(state.0[player.index()]));
        match winner {
            Some(player) => Some(End::win(player)),
            None => (state.0[0] | state.0[1] == u16::MAX).then(|| End::draw(EndReason::Rules)),
        }
    }

    fn legal(&self, state: &Stones, out: &mut Vec<Action>) {
        if self.end(state).is_none() {
            out.extend((0..16).filter(|cell| (state.0[0] | state.0[1]) >> cell & 1 == 0).map(Action));
        }
    }

    fn play(&self, state: &mut Stones, action: Action) {
        let mover = self.to_move(state);
        state.0[mover.index()] |= 1 << action.0;
    }

    fn ply(&self, state: &Stones) -> usize {
        (state.0[0].count_ones() + state.0[1].count_ones()) as usize
    }

    fn key(&self, state: &Stones) -> [u16; 2] {
        state.0
    }

    fn encode(&self, state: &Stones, out: &mut [f32]) {
        let mover = self.to_move(state);
        let one_more = self.ply(state) % 2 == 1;
        for cell in 0..16 {
            out[cell] = f32::from(state.0[mover.index()] >> cell & 1);
            out[16 + cell] = f32::from(state.0[mover.other().index()] >> cell & 1);
            out[32 + cell] = f32::from(u8::from(one_more));
        }
    }

    /// The stones of the viewer, and those of the other.
    fn ending_shape(&self) -> PolicyShape {
        PolicyShape { planes: 2, flat: 0 }
    }

    fn encode_ending(&self, end: &Stones, viewer: Player, out: &mut [f32]) {
        for (plane, player) in [viewer, viewer.other()].into_iter().enumerate() {
            for cell in 0..16 {
                out[16 * plane + cell] = f32::from(end.0[player.index()] >> cell & 1);
            }
        }
    }

    fn symmetry_count(&self) -> usize {
        8
    }

    fn map_state(&self, state: &Stones, symmetry: usize) -> Stones {
        Stones(state.0.map(|stones| {
            (0..16).filter(|cell| stones >> cell & 1 == 1).fold(0, |all, cell| all | 1 << map_cell(cell, symmetry))
        }))
    }

    fn map_action(&self, action: Action, symmetry: usize) -> Action {
        Action(map_cell(action.index(), symmetry) as u16)
    }

    fn action_text(&self, action: Action) -> String {
        format!("{:02}", action.0)
    }

    fn parse_action(&self, text: &str) -> Result<Action, TextError> {
        match text.parse() {
            Ok(cell) if cell < 16 => Ok(Action(cell)),
            _ => Err(TextError::new("a move is a cell, 00 to 15")),
        }
    }

    fn state_text(&self, state: &Stones) -> String {
        let sign = |cell: u16| match (state.0[0] >> cell & 1, state.0[1] >> cell & 1) {
            (1, _) => 'x',
            (_, 1) => 'o',
            _ => '.',
        };
        (0..16).map(sign).collect()
    }

    fn parse_state(&self, text: &str) -> Result<Stones, TextError> {
        let mut stones = [0; 2];
        if text.len() != 16 {
            return Err(TextError::new("a position is 16 characters"));
        }
        for (cell, sign) in text.chars().enumerate() {
            match sign {
                'x' => stones[0] |= 1 << cell,
                'o' => stones[1] |= 1 << cell,
                '.' => {}
                _ => return Err(TextError::new("a cell is one of x, o and .")),
            }
        }
        Ok(Stones(stones))
    }

    fn paint(&self, state: &Stones, _: Option<Action>) -> Drawing {
        self.state_text(state).into()
    }

    fn player_names(&self) -> [&'static str; 2] {
        ["x", "o"]
    }
}

#[test]
fn the_test_game_is_what_it_says() {
    let game = Pairs;
    let mut state = game.startpos();
    let movers: Vec<usize> = (0..5)
        .map(|cell| {
            let mover = game.to_move(&state);
            game.play(&mut state, Action([0, 4, 2, 5, 10][cell]));
            mover.index()
        })
        .collect();
    assert_eq!(movers, [0, 1, 1, 0, 0]);
    assert_eq!(game.end(&state), Some(End { outcome: Outcome::Win(Player::First), reason: EndReason::Rules }));
}
