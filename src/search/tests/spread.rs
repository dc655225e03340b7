//! The search of one position with evaluations on several threads.

use std::thread::ThreadId;

use super::*;
use crate::eval::testgame::Pairs;
use crate::eval::{EvalError, HashEval};

/// Answers by hash and remembers which threads asked.
struct Told(HashEval, std::sync::Arc<std::sync::Mutex<Vec<ThreadId>>>);

impl<G: Game> Evaluator<G> for Told {
    fn evaluate(&mut self, game: &G, leaves: &Leaves<G>, out: &mut Evaluations) -> Result<(), EvalError> {
        self.1.lock().unwrap().push(std::thread::current().id());
        self.0.evaluate(game, leaves, out)
    }
}

#[test]
fn threads_change_nothing_but_who_works() {
    let game = Pairs;
    let begin = || {
        let mut tree = Tree::new(SearchParams::default(), game.startpos());
        tree.begin(Budget::plain(500), Stream::test(3));
        tree
    };
    let mut alone = begin();
    drive(&mut alone, &game, &mut HashEval::new(5), 16);
    for threads in [1, 2, 5, 40] {
        let asked = std::sync::Arc::default();
        let workers = (0..threads).map(|_| Told(HashEval::new(5), std::sync::Arc::clone(&asked))).collect();
        let mut spread = Spread::new(workers).unwrap();
        let mut tree = begin();
        drive(&mut tree, &game, &mut spread, 16);
        assert_eq!(tree.summary(), alone.summary(), "{threads} threads");
        let mut asked: Vec<_> = asked.lock().unwrap().clone();
        asked.sort_by_key(|id| format!("{id:?}"));
        asked.dedup();
        assert!(asked.len() <= threads + 1 && (threads == 1 || asked.len() > 1), "{} of {threads}", asked.len());
    }
    assert!(Spread::<Pairs, HashEval>::new(Vec::new()).is_err());
}

#[test]
fn a_failure_on_any_thread_is_told() {
    struct Broken;
    impl<G: Game> Evaluator<G> for Broken {
        fn evaluate(&mut self, _: &G, _: &Leaves<G>, _: &mut Evaluations) -> Result<(), EvalError> {
            Err(EvalError("gone".to_owned()))
        }
    }
    let game = Pairs;
    let workers: Vec<Box<dyn Evaluator<Pairs>>> = vec![Box::new(HashEval::new(5)), Box::new(Broken)];
    let mut tree = Tree::new(SearchParams::default(), game.startpos());
    tree.begin(Budget::plain(100), Stream::test(3));
    let result = Solo::default().search(&mut tree, &game, &mut Spread::new(workers).unwrap(), |_| 8, |_| true);
    assert_eq!(result.unwrap_err().to_string(), "gone");
}
