//! A slow, plain search written from the formulas alone: recursive, one boxed node for each position, `f64`
//! throughout, every number recomputed where it is needed.

use super::*;
use crate::game::{Outcome, Player, legal_list};

/// Values of the first player's win, the draw, the second player's win.
type Wdl = [f64; 3];

pub struct Reference<G: Game, E> {
    pub game: G,
    pub params: SearchParams,
    pub evaluator: E,
    pub root: Box<RefNode<G>>,
    /// The smallest gap between the two best scores of any choice so far: where it is tiny, rounding may decide.
    pub closest: f64,
    noisy: bool,
    gumbel: Vec<f64>,
    halving: Rounds,
    new_visits: Vec<u32>,
}

pub struct RefNode<G: Game> {
    pub state: G::State,
    pub sum: Wdl,
    pub visits: u32,
    pub result: Option<Outcome>,
    own: Wdl,
    pub moves: Vec<RefMove<G>>,
}

pub struct RefMove<G: Game> {
    pub action: Action,
    pub prior: f64,
    pub child: Option<Box<RefNode<G>>>,
}

/// Sequential halving in its plainest form: whole rounds over the moves in play.
#[derive(Default)]
struct Rounds {
    budget: u32,
    phases: f64,
    in_play: u32,
    round: u32,
    picks_left: u32,
    rounds_left: u32,
}

fn certain(outcome: Outcome) -> Wdl {
    match outcome {
        Outcome::Win(Player::First) => [1.0, 0.0, 0.0],
        Outcome::Draw => [0.0, 1.0, 0.0],
        Outcome::Win(Player::Second) => [0.0, 0.0, 1.0],
    }
}

fn utility(value: Wdl, player: Player, draw_score: f64) -> f64 {
    let sign = if player == Player::First { 1.0 } else { -1.0 };
    sign * (value[0] - value[2]) + draw_score * value[1]
}

impl<G: Game> RefNode<G> {
    pub fn mean(&self) -> Wdl {
        match self.result {
            Some(outcome) => certain(outcome),
            None => self.sum.map(|s| s / f64::from(self.visits)),
        }
    }

    fn count(&mut self, value: Wdl) {
        self.visits += 1;
        for (sum, part) in self.sum.iter_mut().zip(value) {
            *sum += part;
        }
    }
}

impl<G: Game> RefMove<G> {
    pub fn visits(&self) -> u32 {
        self.child.as_ref().map_or(0, |child| child.visits)
    }
}

impl Rounds {
    fn new(considered: u32, budget: u32) -> Self {
        let phases = f64::from(considered.max(2)).log2().ceil();
        let mut rounds = Self { budget, phases, in_play: considered, round: 0, picks_left: considered, rounds_left: 0 };
        rounds.rounds_left = rounds.rounds_of_phase();
        rounds
    }

    fn rounds_of_phase(&self) -> u32 {
        (f64::from(self.budget) / (self.phases * f64::from(self.in_play))).floor().max(1.0) as u32
    }

    fn next_round(&mut self) {
        self.round += 1;
        self.rounds_left -= 1;
        if self.rounds_left == 0 {
            if self.in_play > 1 {
                self.in_play = (self.in_play / 2).max(2);
            }
            self.rounds_left = self.rounds_of_phase();
        }
        self.picks_left = self.in_play;
    }
}

impl<G: Game, E: Evaluator<G>> Reference<G, E> {
    pub fn new(game: G, params: SearchParams, mut evaluator: E, state: &G::State) -> Self {
        let root = Self::open(&game, &mut evaluator, state.clone());
        Self {
            game,
            params,
            evaluator,
            root,
            closest: f64::INFINITY,
            noisy: false,
            gumbel: Vec::new(),
            halving: Rounds::default(),
            new_visits: Vec::new(),
        }
    }

    /// A new node after its first visit.
    fn open(game: &G, evaluator: &mut E, state: G::State) -> Box<RefNode<G>> {
        if let Some(end) = game.end(&state) {
            let (own, result) = (certain(end.outcome), Some(end.outcome));
            return Box::new(RefNode { state, sum: own, visits: 1, result, own, moves: Vec::new() });
        }
        let (mut leaves, mut answers) = (Leaves::default(), Evaluations::default());
        let legal = legal_list(game, &state);
        leaves.push(&state, &legal);
        evaluator.evaluate(game, &leaves, &mut answers).unwrap();
        let value = answers.values[0];
        let (win, draw, loss) = (f64::from(value.win), f64::from(value.draw), f64::from(value.loss));
        let own = if game.to_move(&state) == Player::First { [win, draw, loss] } else { [loss, draw, win] };
        let moves = legal
            .into_iter()
            .zip(&answers.priors)
            .map(|(action, &prior)| RefMove { action, prior: prior.into(), child: None })
            .collect();
        Box::new(RefNode { state, sum: own, visits: 1, result: None, own, moves })
    }

    /// A search of `simulations` descents; `priors` replace those of the root and `gumbel` is added to its scores.
    pub fn search(&mut self, simulations: u32, priors: Option<&[f64]>, gumbel: &[f64]) {
        self.noisy = priors.is_some();
        for (edge, &prior) in self.root.moves.iter_mut().zip(priors.unwrap_or(&[])) {
            edge.prior = prior;
        }
        self.gumbel = gumbel.to_vec();
        self.gumbel.resize(self.root.moves.len(), 0.0);
        let considered = self.params.gumbel_considered.min(self.root.moves.len() as u32);
        self.halving = Rounds::new(considered, simulations);
        self.new_visits = vec![0; self.root.moves.len()];
        let mut root = std::mem::replace(&mut self.root, Self::hollow(&self.game));
        for _ in 0..simulations {
            if root.result.is_some() && (self.params.solver || root.moves.is_empty()) {
                break;
            }
            self.visit(&mut root, true);
        }
        self.root = root;
    }

    fn hollow(game: &G) -> Box<RefNode<G>> {
        let state = game.startpos();
        Box::new(RefNode { state, sum: [0.0; 3], visits: 0, result: None, own: [0.0; 3], moves: Vec::new() })
    }

    /// Makes a move at the root; what is below it stays.
    pub fn advance(&mut self, action: Action) {
        let root = &mut self.root;
        let at = root.moves.iter().position(|m| m.action == action).unwrap();
        let child = root.moves[at].child.take();
        let mut state = root.state.clone();
        self.game.play(&mut state, action);
        self.root = child.unwrap_or_else(|| Self::open(&self.game, &mut self.evaluator, state));
    }

    fn visit(&mut self, node: &mut RefNode<G>, is_root: bool) -> Wdl {
        if let (Some(outcome), false) = (node.result, is_root) {
            node.count(certain(outcome));
            return certain(outcome);
        }
        let at = self.choose(node, is_root);
        if is_root {
            self.new_visits[at] += 1;
        }
        let mut value = match &mut node.moves[at].child {
            Some(child) => self.visit(child, false),
            None => {
                let mut state = node.state.clone();
                self.game.play(&mut state, node.moves[at].action);
                let child = Self::open(&self.game, &mut self.evaluator, state);
                let value = child.own;
                node.moves[at].child = Some(child);
                value
            }
        };
        if self.params.solver {
            let mover = self.game.to_move(&node.state);
            let results: Vec<Option<Outcome>> =
                node.moves.iter().map(|m| m.child.as_ref().and_then(|child| child.result)).collect();
            let best = results.iter().flatten().copied().max_by(|a, b| a.points(mover).total_cmp(&b.points(mover)));
            if best == Some(Outcome::Win(mover)) || results.iter().all(Option::is_some) {
                node.result = best;
            }
            value = node.result.map_or(value, certain);
        }
        node.count(value);
        value
    }

    /// Utility of a move for the player who makes it; `None` when it is proven lost.
    fn utility_of(&self, child: &RefNode<G>, mover: Player) -> Option<f64> {
        let lost = child.result == Some(Outcome::Win(mover.other()));
        (!(lost && self.params.solver)).then(|| utility(child.mean(), mover, self.params.draw_score.into()))
    }

    fn choose(&mut self, node: &RefNode<G>, is_root: bool) -> usize {
        let scores = match self.params.algorithm {
            Algorithm::Puct => self.puct_scores(node, is_root),
            Algorithm::Gumbel if is_root => return self.gumbel_root(node),
            Algorithm::Gumbel => self.gumbel_inner_scores(node),
        };
        self.best(&scores)
    }

    /// The largest score; the first of equals, or the first move when all are impossible.
    fn best(&mut self, scores: &[f64]) -> usize {
        let mut best = 0;
        for (at, &score) in scores.iter().enumerate() {
            if score > scores[best] {
                best = at;
            }
        }
        for (at, &score) in scores.iter().enumerate() {
            if at != best && score.is_finite() {
                self.closest = self.closest.min((scores[best] - score).abs());
            }
        }
        best
    }

    fn puct_scores(&self, node: &RefNode<G>, is_root: bool) -> Vec<f64> {
        let mover = self.game.to_move(&node.state);
        let p = &self.params;
        let total: u32 = node.moves.iter().map(RefMove::visits).sum();
        let seen: f64 = node.moves.iter().filter(|m| m.visits() > 0).map(|m| m.prior).sum();
        let reduction = if is_root && self.noisy { p.fpu_reduction_root } else { p.fpu_reduction };
        let unvisited = utility(node.mean(), mover, p.draw_score.into()) - f64::from(reduction) * seen.sqrt();
        let base = f64::from(p.c_puct_base);
        let weight = f64::from(p.c_puct) + ((1.0 + f64::from(total) + base) / base).ln();
        node.moves
            .iter()
            .map(|m| {
                let q = match &m.child {
                    None => unvisited,
                    Some(child) => self.utility_of(child, mover).unwrap_or(f64::NEG_INFINITY),
                };
                q + weight * m.prior * f64::from(total.max(1)).sqrt() / f64::from(1 + m.visits())
            })
            .collect()
    }

    /// `ln prior + (c_visit + max N) c_scale q` with q completed and scaled to [0, 1].
    pub fn completed_scores(&self, node: &RefNode<G>) -> Vec<f64> {
        let mover = self.game.to_move(&node.state);
        let p = &self.params;
        let q01 = |u: f64| (u + 1.0) / 2.0;
        let total: u32 = node.moves.iter().map(RefMove::visits).sum();
        let most = node.moves.iter().map(RefMove::visits).max().unwrap_or(0);
        let visited = || node.moves.iter().filter_map(|m| Some((m.prior, m.child.as_ref()?)));
        let prior_sum: f64 = visited().map(|(prior, _)| prior).sum();
        let own = q01(utility(node.own, mover, p.draw_score.into()));
        let average: f64 = visited()
            .map(|(prior, child)| prior / prior_sum * q01(self.utility_of(child, mover).unwrap_or(-1.0)))
            .sum();
        let mixed = (own + f64::from(total) * average) / (1.0 + f64::from(total));
        let sigma = (f64::from(p.gumbel_visit) + f64::from(most)) * f64::from(p.gumbel_scale);
        node.moves
            .iter()
            .map(|m| match &m.child {
                None => m.prior.ln() + sigma * mixed,
                Some(child) => match self.utility_of(child, mover) {
                    None => f64::NEG_INFINITY,
                    Some(u) => m.prior.ln() + sigma * q01(u),
                },
            })
            .collect()
    }

    fn gumbel_inner_scores(&self, node: &RefNode<G>) -> Vec<f64> {
        let scores = self.completed_scores(node);
        let total: u32 = node.moves.iter().map(RefMove::visits).sum();
        let top = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let sum: f64 = scores.iter().map(|s| (s - top).exp()).sum();
        scores
            .iter()
            .zip(&node.moves)
            .map(|(&s, m)| match s {
                f64::NEG_INFINITY => s,
                _ => (s - top).exp() / sum - f64::from(m.visits()) / f64::from(1 + total),
            })
            .collect()
    }

    /// The best move among those that had their turn in every round but this one.
    fn gumbel_root(&mut self, node: &RefNode<G>) -> usize {
        let scores: Vec<f64> =
            self.completed_scores(node).iter().zip(&self.gumbel).map(|(score, g)| score + g).collect();
        let possible = |at: usize| scores[at].is_finite();
        let had = self.new_visits.clone();
        let due = |round: u32| (0..scores.len()).any(|at| possible(at) && had[at] == round);
        // A round has no more turns when the other moves in play were proven lost.
        while !due(self.halving.round) && (0..scores.len()).any(|at| possible(at) && had[at] > self.halving.round) {
            self.halving.next_round();
        }
        let round = self.halving.round;
        let only_due = due(round);
        let masked: Vec<f64> = (0..scores.len())
            .map(|at| if only_due && had[at] != round { f64::NEG_INFINITY } else { scores[at] })
            .collect();
        let best = self.best(&masked);
        self.halving.picks_left -= 1;
        if self.halving.picks_left == 0 {
            self.halving.next_round();
        }
        best
    }
}
