//! Random records of the test game.

use super::record::{GameRecord, PlyKind, PlyRecord, RecordEnd};
use super::testgame::Pairs;
use crate::game::{Game, Outcome, Player, WdlAbs, full_name};
use crate::util::rng::Stream;

/// A game of random moves with random searches.
pub fn random_record(stream: &mut Stream, generation: u32, index: u32) -> GameRecord {
    let game = Pairs;
    let mut state = game.startpos();
    let start = game.state_text(&state);
    let mut plies = Vec::new();
    let openings = stream.below(3);
    let end = loop {
        if let Some(end) = game.end(&state) {
            break end;
        }
        let mut legal = Vec::new();
        game.legal(&state, &mut legal);
        let kind = match (plies.len() < openings, legal.len()) {
            (true, _) => PlyKind::Opening,
            (_, 1) => PlyKind::Forced,
            _ if stream.below(2) == 0 => PlyKind::Fast,
            _ => PlyKind::Full,
        };
        let mut policy = vec![0.0; if kind == PlyKind::Full { legal.len() } else { 0 }];
        if !policy.is_empty() {
            stream.dirichlet(0.3, &mut policy);
        }
        let mut wdl = [0.0; 3];
        stream.dirichlet(1.0, &mut wdl);
        let outcomes = [Outcome::Win(Player::First), Outcome::Draw, Outcome::Win(Player::Second)];
        let proven = (kind != PlyKind::Opening && stream.below(8) == 0).then(|| outcomes[stream.below(3)]);
        let action = legal[stream.below(legal.len())];
        plies.push(PlyRecord {
            action,
            kind,
            value: WdlAbs { first: wdl[0], draw: wdl[1], second: wdl[2] },
            policy,
            proven,
            weight: if stream.below(4) == 0 { stream.unit() as f32 * 3.0 } else { 1.0 },
        });
        game.play(&mut state, action);
    };
    GameRecord {
        game: full_name(&game),
        rules_version: Pairs::RULES_VERSION,
        seed: 77,
        generation,
        index,
        start,
        plies,
        end: RecordEnd::from(end),
    }
}

/// `count` of them, numbered from 0.
pub fn random_records(seed: u64, generation: u32, count: u32) -> Vec<GameRecord> {
    (0..count).map(|index| random_record(&mut Stream::test(seed ^ u64::from(index) << 20), generation, index)).collect()
}
