//! Games for tests that are graphs given as literals: who moves at each vertex is stated, so players may move
//! several times in a row, and paths may come back to a vertex.

use std::collections::HashMap;
use std::sync::Arc;

use super::{Action, Drawing, End, EndReason, Game, Outcome, PlaneShape, Player, PolicyShape, TextError};
use crate::util::rng::Stream;

/// One position of a [`Graph`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Vertex {
    /// The game is over.
    End(Outcome),
    /// This player moves to one of these vertices.
    Open(Player, Vec<u16>),
}

/// A game tree as a literal.
#[derive(Clone, Debug)]
pub enum Spec {
    /// The game is over.
    End(Outcome),
    /// This player moves to one of these.
    Move(Player, Vec<Spec>),
}

/// The first player to move.
pub fn first<const N: usize>(children: [Spec; N]) -> Spec {
    Spec::Move(Player::First, children.into())
}

/// The second player to move.
pub fn second<const N: usize>(children: [Spec; N]) -> Spec {
    Spec::Move(Player::Second, children.into())
}

/// The first player has won.
pub const WIN1: Spec = Spec::End(Outcome::Win(Player::First));
/// The second player has won.
pub const WIN2: Spec = Spec::End(Outcome::Win(Player::Second));
/// Nobody has won.
pub const DRAW: Spec = Spec::End(Outcome::Draw);

/// A token moves along a directed graph from vertex 0. The `repeats`-th visit of one vertex is a draw, and so is
/// the `max_plies`-th move.
#[derive(Clone, Debug)]
pub struct Graph {
    vertices: Arc<[Vertex]>,
    repeats: u8,
    max_plies: u16,
}

/// Where the token is and how often each vertex was visited.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Token {
    at: u16,
    ply: u16,
    seen: Vec<u8>,
}

impl Graph {
    /// A game on these vertices.
    pub fn new(vertices: Vec<Vertex>, repeats: u8, max_plies: u16) -> Self {
        Self { vertices: vertices.into(), repeats, max_plies }
    }

    /// The game whose whole tree is `spec`.
    pub fn tree(spec: &Spec) -> Self {
        fn add(spec: &Spec, vertices: &mut Vec<Vertex>) -> u16 {
            let here = vertices.len();
            vertices.push(Vertex::End(Outcome::Draw));
            vertices[here] = match spec {
                Spec::End(outcome) => Vertex::End(*outcome),
                Spec::Move(player, children) => {
                    Vertex::Open(*player, children.iter().map(|child| add(child, vertices)).collect())
                }
            };
            here as u16
        }
        let mut vertices = Vec::new();
        add(spec, &mut vertices);
        Self::new(vertices, 2, 1000)
    }

    /// A heap of `stones`: take two or three and the opponent is to move; take one and, once a turn, move again.
    /// Who takes the last stone wins; with `misere`, loses.
    pub fn heap(stones: u16, misere: bool) -> Self {
        fn add(
            key: (u16, Player, bool),
            misere: bool,
            index: &mut HashMap<(u16, Player, bool), u16>,
            vertices: &mut Vec<Vertex>,
        ) -> u16 {
            if let Some(&known) = index.get(&key) {
                return known;
            }
            let (stones, player, again) = key;
            let here = vertices.len();
            index.insert(key, here as u16);
            vertices.push(Vertex::End(Outcome::Draw));
            let children = (1..=stones.min(3))
                .map(|take| {
                    if take == stones {
                        vertices.push(Vertex::End(Outcome::Win(if misere { player.other() } else { player })));
                        return vertices.len() as u16 - 1;
                    }
                    let next = if take == 1 && again {
                        (stones - 1, player, false)
                    } else {
                        (stones - take, player.other(), true)
                    };
                    add(next, misere, index, vertices)
                })
                .collect();
            vertices[here] = Vertex::Open(player, children);
            here as u16
        }
        let mut vertices = Vec::new();
        add((stones, Player::First, true), misere, &mut HashMap::new(), &mut vertices);
        Self::new(vertices, 2, 1000)
    }

    /// Whoever leaves the circle loses, so best play goes round until the repetition (or the cap) makes a draw.
    pub fn circle(repeats: u8, max_plies: u16) -> Self {
        use Player::{First, Second};
        let vertices = vec![
            Vertex::Open(First, vec![1, 5]),
            Vertex::Open(Second, vec![2, 4]),
            Vertex::Open(First, vec![0, 3]),
            Vertex::Open(Second, vec![2, 4, 0]),
            Vertex::End(Outcome::Win(First)),
            Vertex::End(Outcome::Win(Second)),
        ];
        Self::new(vertices, repeats, max_plies)
    }

    /// A random graph: about a third of the vertices end the game, the others belong to a random player.
    pub fn random(random: &mut Stream, size: u16, repeats: u8, max_plies: u16) -> Self {
        let player = |random: &mut Stream| Player::BOTH[random.below(2)];
        let vertices = (0..size).map(|vertex| {
            if vertex > 0 && random.below(3) == 0 {
                return Vertex::End(if random.below(3) == 0 { Outcome::Draw } else { Outcome::Win(player(random)) });
            }
            let mover = player(random);
            let degree = 1 + random.below(4);
            Vertex::Open(mover, (0..degree).map(|_| random.below(usize::from(size)) as u16).collect())
        });
        Self::new(vertices.collect(), repeats, max_plies)
    }

    fn vertex(&self, state: &Token) -> &Vertex {
        &self.vertices[usize::from(state.at)]
    }
}

impl Game for Graph {
    type State = Token;
    /// Vertex, plies made, visits of the vertex.
    type Key = (u16, u16, u8);

    const NAME: &'static str = "graph";
    const ENCODING_VERSION: u32 = 1;
    const RULES_VERSION: u32 = 1;

    fn from_options(_: &[(String, String)]) -> Result<Self, TextError> {
        Ok(Self::circle(3, 20))
    }

    fn action_count(&self) -> usize {
        let degree = |vertex: &Vertex| match vertex {
            Vertex::End(_) => 0,
            Vertex::Open(_, children) => children.len(),
        };
        self.vertices.iter().map(degree).max().unwrap_or(0)
    }

    fn policy_shape(&self) -> PolicyShape {
        PolicyShape { planes: 0, flat: self.action_count() }
    }

    fn plane_shape(&self) -> PlaneShape {
        PlaneShape { channels: 3, height: 1, width: 1 }
    }

    fn plane_names(&self) -> Vec<String> {
        ["vertex", "plies made", "visits of the vertex"].map(String::from).to_vec()
    }

    fn max_plies(&self) -> usize {
        self.max_plies.into()
    }

    fn start(&self, _: &mut Stream) -> Token {
        let mut seen = vec![0; self.vertices.len()];
        seen[0] = 1;
        Token { at: 0, ply: 0, seen }
    }

    fn to_move(&self, state: &Token) -> Player {
        match self.vertex(state) {
            Vertex::End(_) => Player::First,
            Vertex::Open(player, _) => *player,
        }
    }

    fn end(&self, state: &Token) -> Option<End> {
        match self.vertex(state) {
            Vertex::End(outcome) => Some(End { outcome: *outcome, reason: EndReason::Rules }),
            Vertex::Open(..) if state.seen[usize::from(state.at)] >= self.repeats => {
                Some(End::draw(EndReason::Repetition))
            }
            Vertex::Open(..) => (state.ply >= self.max_plies).then(|| End::draw(EndReason::PlyCap)),
        }
    }

    fn legal(&self, state: &Token, out: &mut Vec<Action>) {
        if let (None, Vertex::Open(_, children)) = (self.end(state), self.vertex(state)) {
            out.extend((0..children.len() as u16).map(Action));
        }
    }

    fn play(&self, state: &mut Token, action: Action) {
        let Vertex::Open(_, children) = self.vertex(state) else { panic!("the game is over") };
        state.at = children[action.index()];
        state.ply += 1;
        state.seen[usize::from(state.at)] += 1;
    }

    fn ply(&self, state: &Token) -> usize {
        state.ply.into()
    }

    fn key(&self, state: &Token) -> Self::Key {
        (state.at, state.ply, state.seen[usize::from(state.at)])
    }

    fn encode(&self, state: &Token, out: &mut [f32]) {
        let (at, ply, seen) = self.key(state);
        out.copy_from_slice(&[at.into(), ply.into(), seen.into()]);
    }

    fn symmetry_count(&self) -> usize {
        1
    }

    fn map_state(&self, state: &Token, _: usize) -> Token {
        state.clone()
    }

    fn map_action(&self, action: Action, _: usize) -> Action {
        action
    }

    fn action_text(&self, action: Action) -> String {
        action.0.to_string()
    }

    fn parse_action(&self, text: &str) -> Result<Action, TextError> {
        text.parse().map(Action).map_err(|_| TextError::new("a move is a number"))
    }

    fn state_text(&self, state: &Token) -> String {
        format!("{} {}", state.at, state.ply)
    }

    fn parse_state(&self, _: &str) -> Result<Token, TextError> {
        Err(TextError::new("positions of this game carry a history and have no text"))
    }

    fn paint(&self, state: &Token, _: Option<Action>) -> Drawing {
        self.state_text(state).into()
    }

    fn player_names(&self) -> [&'static str; 2] {
        ["first", "second"]
    }
}

/// The result under best play, by plain recursion over all lines of play (small games only).
pub fn solve<G: Game>(game: &G, state: &G::State) -> Outcome {
    if let Some(end) = game.end(state) {
        return end.outcome;
    }
    let mover = game.to_move(state);
    let mut best = Outcome::Win(mover.other());
    for action in super::legal_list(game, state) {
        let mut next = state.clone();
        game.play(&mut next, action);
        let outcome = solve(game, &next);
        if outcome.points(mover) > best.points(mover) {
            best = outcome;
        }
        if best == Outcome::Win(mover) {
            break;
        }
    }
    best
}

/// What [`solve`] would say if players were taken to alternate (negamax by ply): wrong where one moves twice.
pub fn solve_alternating<G: Game>(game: &G, state: &G::State) -> f64 {
    if let Some(end) = game.end(state) {
        return end.outcome.points(game.to_move(state)) * 2.0 - 1.0;
    }
    super::legal_list(game, state)
        .into_iter()
        .map(|action| {
            let mut next = state.clone();
            game.play(&mut next, action);
            -solve_alternating(game, &next)
        })
        .fold(f64::NEG_INFINITY, f64::max)
}

#[test]
fn the_toy_games_are_what_they_say() {
    // First player moves twice in a row: alone the second of the moves decides.
    let tree = Graph::tree(&first([first([WIN2, WIN1]), second([DRAW, WIN1])]));
    let mut state = tree.startpos();
    assert_eq!(solve(&tree, &state), Outcome::Win(Player::First));
    tree.play(&mut state, Action(0));
    assert_eq!(tree.to_move(&state), Player::First);
    assert_eq!(tree.end(&state), None);
    tree.play(&mut state, Action(0));
    assert_eq!(tree.end(&state), Some(End::win(Player::Second)));

    // Heap of four: one and three, all by the first player.
    assert_eq!(solve(&Graph::heap(4, false), &Graph::heap(4, false).startpos()), Outcome::Win(Player::First));
    // Of five: every turn leaves one to four stones, with which a turn can end the game.
    assert_eq!(solve(&Graph::heap(5, false), &Graph::heap(5, false).startpos()), Outcome::Win(Player::Second));

    let circle = Graph::circle(3, 100);
    assert_eq!(solve(&circle, &circle.startpos()), Outcome::Draw);
    let mut state = circle.startpos();
    for _ in 0..2 {
        for action in [0, 0, 0] {
            assert_eq!(circle.end(&state), None);
            circle.play(&mut state, Action(action));
        }
    }
    assert_eq!(circle.end(&state), Some(End::draw(EndReason::Repetition)));
    let capped = Graph::circle(3, 2);
    let mut state = capped.startpos();
    capped.play(&mut state, Action(0));
    capped.play(&mut state, Action(0));
    assert_eq!(capped.end(&state), Some(End::draw(EndReason::PlyCap)));
}
