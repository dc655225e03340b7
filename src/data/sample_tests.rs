use std::collections::HashMap;

use super::super::record::{GameRecord, PlyKind};
use super::super::testgame::{Pairs, Stones};
use super::super::testrecords::random_records;
use super::super::window::ReplayParams;
use super::*;
use crate::game::{Outcome, Player, WdlAbs};

fn window_of(records: &[GameRecord], params: &SampleParams) -> ReplayWindow {
    let mut window = ReplayWindow::new(ReplayParams::default(), params.clone());
    window.push(&Pairs, records).unwrap();
    window
}

const KEY: SampleKey = SampleKey { seed: 5, generation: 3, step: 8 };

/// With all targets there are.
fn filled(window: &ReplayWindow, params: &SampleParams, size: usize, key: SampleKey) -> Batch {
    let mut batch = Batch::new(&Pairs, size, FurtherTargets { ending: true, reply: true });
    Sampler::new(Pairs, params.clone()).fill(window, key, &mut batch).unwrap();
    batch
}

/// The position of row `row`, read back from its planes.
fn state_of(batch: &Batch, row: usize) -> Stones {
    let planes = &batch.planes[48 * row..48 * (row + 1)];
    let bits = |plane: &[f32]| plane.iter().enumerate().fold(0, |all, (cell, x)| all | (*x as u16) << cell);
    let (own, theirs) = (bits(&planes[..16]), bits(&planes[16..32]));
    let mover = Pairs.to_move(&Stones([own, theirs]));
    if mover == Player::First { Stones([own, theirs]) } else { Stones([theirs, own]) }
}

#[test]
fn rows_do_not_depend_on_who_fills_them() {
    let params = SampleParams::default();
    let window = window_of(&random_records(90, 0, 40), &params);
    let whole = filled(&window, &params, 50, KEY);
    let mut pieces = Batch::new(&Pairs, 50, FurtherTargets { ending: true, reply: true });
    for list in
        [&mut pieces.planes, &mut pieces.policy, &mut pieces.ending, &mut pieces.reply, &mut pieces.reply_weight]
    {
        list.fill(9.0);
    }
    let sampler = Sampler::new(Pairs, params.clone());
    let mut parts: Vec<BatchRows<'_>> = pieces.pieces(7).collect();
    assert_eq!(parts.len(), 8);
    std::thread::scope(|scope| {
        for part in parts.iter_mut().rev() {
            scope.spawn(|| sampler.fill_rows(&window, KEY, part).unwrap());
        }
    });
    drop(parts);
    assert_eq!(whole, pieces);
    // A longer batch begins with the same rows; another step has others.
    assert_eq!(filled(&window, &params, 80, KEY).planes[..50 * 48], whole.planes);
    assert_ne!(filled(&window, &params, 50, SampleKey { step: 9, ..KEY }).planes, whole.planes);
}

#[test]
fn positions_are_drawn_in_proportion_to_their_weights() {
    let params = SampleParams { symmetries: false, fast_weight: 0.5, ..SampleParams::default() };
    let records = random_records(91, 0, 12);
    let window = window_of(&records, &params);
    let mut expected: HashMap<Stones, f64> = HashMap::new();
    let (mut total, mut full) = (0.0, 0.0);
    for record in &records {
        for (state, ply) in record.replay(&Pairs).unwrap() {
            let factor = match ply.kind {
                PlyKind::Opening => 0.0,
                PlyKind::Fast => 0.5,
                PlyKind::Forced => 0.25,
                PlyKind::Full => 1.0,
            };
            let weight = f64::from(ply.weight) * factor;
            *expected.entry(state).or_default() += weight;
            total += weight;
            full += if ply.kind == PlyKind::Full { weight } else { 0.0 };
        }
    }
    let rows = 60_000;
    let batch = filled(&window, &params, rows, KEY);
    let mut seen: HashMap<Stones, f64> = HashMap::new();
    for row in 0..rows {
        *seen.entry(state_of(&batch, row)).or_default() += 1.0;
    }
    for (state, weight) in expected {
        let share = weight / total;
        let deviation = (rows as f64 * share).sqrt();
        let count = seen.remove(&state).unwrap_or(0.0);
        // Five standard deviations; weights are rounded to 1/1024.
        assert!((count - rows as f64 * share).abs() < 5.0 * deviation + 5.0, "{state:?}: {count}, {share}");
    }
    assert!(seen.is_empty());
    let with_policy = f64::from(batch.policy_weight.iter().sum::<f32>());
    assert!((with_policy / rows as f64 - full / total).abs() < 0.01);
    assert!(batch.weight.iter().all(|weight| *weight == 1.0));
}

#[test]
fn symmetries_map_everything_and_are_uniform() {
    let plain = SampleParams { symmetries: false, ..SampleParams::default() };
    let mapped = SampleParams { symmetries: true, ..plain.clone() };
    let window = window_of(&random_records(92, 0, 30), &plain);
    let rows = 4000;
    let (a, b) = (filled(&window, &plain, rows, KEY), filled(&window, &mapped, rows, KEY));
    assert_eq!(a.value, b.value);
    assert_eq!(a.policy_weight, b.policy_weight);
    assert_eq!((&a.ending_weight, &a.reply_weight), (&b.ending_weight, &b.reply_weight));
    let mut counts = [0.0; 8];
    for row in 0..rows {
        let (state, seen) = (state_of(&a, row), state_of(&b, row));
        let fits = |&symmetry: &usize| {
            let moved = |from: &[f32], to: &[f32]| {
                (0..16).all(|cell| {
                    let there = Pairs.map_action(Action(cell), symmetry).index();
                    from[16 * row + usize::from(cell)] == to[16 * row + there]
                })
            };
            // Row 2r of the ending is a plane of row r.
            let moved_plane = |plane: usize| {
                let at = |batch: &Batch, cell: usize| batch.ending[32 * row + 16 * plane + cell];
                (0..16).all(|cell| at(&a, cell) == at(&b, Pairs.map_action(Action(cell as u16), symmetry).index()))
            };
            Pairs.map_state(&state, symmetry) == seen
                && moved(&a.legal, &b.legal)
                && moved(&a.policy, &b.policy)
                && moved(&a.reply, &b.reply)
                && (0..2).all(moved_plane)
        };
        let fitting: Vec<usize> = (0..8).filter(fits).collect();
        assert!(!fitting.is_empty(), "row {row} is the image of its position");
        fitting.iter().for_each(|&symmetry| counts[symmetry] += 1.0 / fitting.len() as f64);
    }
    // Expected 500 each, standard deviation about 21.
    assert!(counts.iter().all(|count| (count - 500.0).abs() < 105.0), "{counts:?}");
}

#[test]
fn legal_masks_and_policies_are_those_of_the_position() {
    let params = SampleParams { symmetries: false, ..SampleParams::default() };
    let records = random_records(93, 0, 20);
    let window = window_of(&records, &params);
    let batch = filled(&window, &params, 300, KEY);
    let targets: HashMap<Stones, Vec<&Vec<f32>>> = records
        .iter()
        .flat_map(|record| record.replay(&Pairs).unwrap())
        .filter(|(_, ply)| ply.kind == PlyKind::Full)
        .fold(HashMap::new(), |mut all: HashMap<_, Vec<_>>, (state, ply)| {
            all.entry(state).or_default().push(&ply.policy);
            all
        });
    for row in 0..300 {
        let state = state_of(&batch, row);
        let legal = crate::game::legal_list(&Pairs, &state);
        let mask: Vec<f32> = (0..16).map(|cell| f32::from(u8::from(legal.contains(&Action(cell))))).collect();
        assert_eq!(batch.legal[16 * row..16 * (row + 1)], mask);
        let policy = &batch.policy[16 * row..16 * (row + 1)];
        let sum: f32 = policy.iter().sum();
        assert!((sum - batch.policy_weight[row]).abs() < 1e-5);
        if batch.policy_weight[row] == 1.0 {
            let near = |target: &&Vec<f32>| {
                legal.iter().zip(target.iter()).all(|(action, p)| (policy[action.index()] - p).abs() < 2.0 / 65535.0)
            };
            assert!(targets[&state].iter().any(near));
        }
    }
}

#[test]
fn what_follows_is_seen_by_the_mover() {
    let params = SampleParams { symmetries: false, fast_weight: 1.0, forced_weight: 1.0, ..SampleParams::default() };
    // The last games were not played to their end.
    let mut records = random_records(97, 0, 24);
    for record in &mut records[20..] {
        record.plies.pop();
        record.end.reason = super::super::record::Finish::Resigned;
    }
    let batch = filled(&window_of(&records, &params), &params, 600, KEY);
    // What the samples of a game should say, by position.
    type Expected = (Option<[u16; 2]>, Option<Vec<f32>>);
    let mut expected: HashMap<Stones, Vec<Expected>> = HashMap::new();
    for record in &records {
        let played: Vec<_> = record.replay(&Pairs).unwrap().collect();
        let (mut end, last) = *played.last().unwrap();
        Pairs.play(&mut end, last.action);
        let known = record.end.reason != super::super::record::Finish::Resigned;
        for (at, (state, _)) in played.iter().enumerate() {
            let mover = Pairs.to_move(state);
            let reply = played[at..].iter().find(|(later, _)| Pairs.to_move(later) != mover);
            let reply = reply.and_then(|(later, ply)| {
                let legal = crate::game::legal_list(&Pairs, later);
                let shares = match ply.kind {
                    PlyKind::Full => ply.policy.clone(),
                    PlyKind::Forced => vec![1.0],
                    _ => return None,
                };
                let mut all = vec![0.0; 16];
                legal.iter().zip(shares).for_each(|(action, share)| all[action.index()] = share);
                Some(all)
            });
            let ending = known.then(|| [end.0[mover.index()], end.0[mover.other().index()]]);
            expected.entry(*state).or_default().push((ending, reply));
        }
    }
    let mut counts = [[0; 2]; 2];
    for row in 0..600 {
        let bits = |plane: usize| {
            let at = |cell: usize| batch.ending[32 * row + 16 * plane + cell] as u16;
            (0..16).fold(0, |all, cell| all | at(cell) << cell)
        };
        let ending = (batch.ending_weight[row] == 1.0).then(|| [bits(0), bits(1)]);
        let reply = (batch.reply_weight[row] == 1.0).then(|| &batch.reply[16 * row..16 * (row + 1)]);
        let same = |(known, target): &Expected| {
            let near = |a: &&[f32], b: &Vec<f32>| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 2.0 / 65535.0);
            *known == ending && target.is_some() == reply.is_some() && reply.iter().zip(target).all(|(a, b)| near(a, b))
        };
        assert!(expected[&state_of(&batch, row)].iter().any(same), "row {row}");
        counts[0][usize::from(ending.is_some())] += 1;
        counts[1][usize::from(reply.is_some())] += 1;
        // Nothing is left over from rows before.
        assert!(ending.is_some() || bits(0) == 0 && bits(1) == 0);
        assert!(reply.is_some() || batch.reply[16 * row..16 * (row + 1)].iter().all(|share| *share == 0.0));
    }
    assert!(counts.iter().flatten().all(|&count| count > 20), "{counts:?}");
}

#[test]
fn value_targets_mix_in_named_players() {
    // First moves at ply 0, second at 1 and 2, first at 3 and 4, ...
    let mut record = random_records(94, 0, 8).into_iter().max_by_key(|record| record.plies.len()).unwrap();
    let win = Outcome::Win(Player::Second);
    record.plies.truncate(6);
    record.end = super::super::record::RecordEnd { outcome: win, reason: super::super::record::Finish::Resigned };
    for ply in &mut record.plies {
        (ply.kind, ply.proven, ply.weight) = (PlyKind::Fast, None, 1.0);
        ply.policy.clear();
        ply.value = WdlAbs { first: 0.5, draw: 0.3, second: 0.2 };
    }
    record.plies[2].proven = Some(Outcome::Win(Player::First));
    let params = SampleParams { q_mix: 0.5, symmetries: false, fast_weight: 1.0, ..SampleParams::default() };
    let batch = filled(&window_of(&[record], &params), &params, 200, KEY);
    let mut seen = [0; 6];
    for row in 0..200 {
        let ply = Pairs.ply(&state_of(&batch, row));
        seen[ply] += 1;
        // The result 0-0-1 and the root value 0.5-0.3-0.2 in halves.
        let expected = match ply {
            2 => [0.0, 0.0, 1.0],
            1 | 5 => [0.6, 0.15, 0.25],
            _ => [0.25, 0.15, 0.6],
        };
        let value = &batch.value[3 * row..3 * row + 3];
        assert!(value.iter().zip(expected).all(|(a, b)| (a - b).abs() < 2e-5), "ply {ply}: {value:?}");
    }
    assert!(seen.iter().all(|&count| count > 5), "{seen:?}");
}

#[test]
fn a_forced_move_takes_the_value_of_what_it_leads_to() {
    let records = random_records(95, 0, 400);
    let record = records.into_iter().find(|record| record.plies.len() == 16).expect("a full board");
    let mut record = record;
    assert_eq!(record.plies[15].kind, PlyKind::Forced);
    record.plies[15].proven = None;
    record.plies[15].value = WdlAbs { first: 0.0, draw: 0.0, second: 1.0 };
    let target = |record: &GameRecord, ply| {
        let packed = PackedGame::new(&Pairs, record, "", &SampleParams::default()).unwrap();
        value_target(&packed, ply, 1.0)
    };
    // No search follows: the result alone, whatever the forced ply says.
    assert_eq!(target(&record, 15), record.end.outcome.wdl());
    // An opening ply stands for a forced one, which this game has at its very end only.
    record.plies[14].kind = PlyKind::Opening;
    record.plies[14].policy.clear();
    record.plies[14].proven = None;
    record.plies[15].kind = PlyKind::Fast;
    assert_eq!(target(&record, 14), WdlAbs { first: 0.0, draw: 0.0, second: 1.0 });
}

#[test]
fn what_cannot_be_drawn_is_an_error() {
    let params = SampleParams::default();
    let sampler = Sampler::new(Pairs, params.clone());
    let mut batch = Batch::new(&Pairs, 3, FurtherTargets::default());
    let empty = ReplayWindow::new(ReplayParams::default(), params.clone());
    assert_eq!(sampler.fill(&empty, KEY, &mut batch), Err(SampleError::Empty));
    let window = window_of(&random_records(96, 0, 3), &params);
    batch.actions = 17;
    assert_eq!(sampler.fill(&window, KEY, &mut batch), Err(SampleError::Mismatch("batch")));
    let mut none = Batch::new(&Pairs, 0, FurtherTargets::default());
    assert_eq!(sampler.fill(&window, KEY, &mut none), Ok(()));
}
