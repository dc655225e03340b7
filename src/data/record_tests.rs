use super::super::testgame::Pairs;
use super::super::testrecords::random_records;
use super::*;

fn fault(change: impl FnOnce(&mut GameRecord)) -> ReplayError {
    let mut record = random_records(31, 5, 1).remove(0);
    change(&mut record);
    record.check(&Pairs).unwrap_err()
}

#[test]
fn replay_shows_every_position() {
    for record in random_records(30, 0, 50) {
        let mut replay = record.replay(&Pairs).unwrap();
        assert_eq!(replay.len(), record.plies.len());
        for (count, (state, ply)) in replay.by_ref().enumerate() {
            assert_eq!(Pairs.ply(&state), count);
            assert!(std::ptr::eq(ply, &record.plies[count]));
        }
        assert_eq!(Pairs.end(replay.state()).map(RecordEnd::from), Some(record.end));
        assert_eq!(record.check(&Pairs).unwrap(), *replay.state());
    }
}

#[test]
fn faults_are_named_with_game_and_ply() {
    let error = fault(|record| record.plies[3].action = record.plies[2].action);
    assert!(matches!(error.fault, ReplayFault::Illegal(_)));
    let text = error.to_string();
    assert!(text.starts_with("game 0 of generation 5, ply 3: move "), "{text}");

    let error = fault(|record| record.plies[0].action = Action(999));
    assert_eq!(error.to_string(), "game 0 of generation 5, ply 0: move number 999 is not legal there");
    let error = fault(|record| record.game = "uttt".into());
    assert_eq!(error.to_string(), "game 0 of generation 5: it is a game of uttt, expected pairs");
    assert!(matches!(fault(|r| r.rules_version = 9).fault, ReplayFault::OtherRules { found: 9, known: 1 }));
    assert!(matches!(fault(|r| r.start = "?".into()).fault, ReplayFault::Start { .. }));
    fn full(record: &mut GameRecord) -> &mut Vec<f32> {
        &mut record.plies.iter_mut().find(|ply| ply.kind == PlyKind::Full).expect("there is one").policy
    }
    assert!(matches!(fault(|r| full(r).truncate(1)).fault, ReplayFault::PolicyLength { .. }));
    assert!(matches!(fault(|r| full(r)[0] = f32::NAN).fault, ReplayFault::Policy));
    assert!(matches!(fault(|r| full(r)[0] += 0.5).fault, ReplayFault::Policy));
    assert!(matches!(fault(|r| r.plies[1].value.draw = -0.5).fault, ReplayFault::Value(_)));
    assert!(matches!(fault(|r| r.plies[1].weight = f32::INFINITY).fault, ReplayFault::Weight(_)));
    let forced = fault(|r| {
        r.plies[1].kind = PlyKind::Forced;
        r.plies[1].policy.clear();
    });
    assert_eq!(forced.fault, ReplayFault::NotForced(15));
    let after = fault(|r| r.plies.push(r.plies[0].clone()));
    assert_eq!(after.fault, ReplayFault::AfterEnd);
}

#[test]
fn the_result_is_that_of_the_final_position() {
    let other = |r: &GameRecord| match r.end.outcome {
        Outcome::Draw => Outcome::Win(Player::First),
        Outcome::Win(player) => Outcome::Win(player.other()),
    };
    let error = fault(|r| r.end.outcome = other(r));
    assert!(error.to_string().contains("but after its last ply the game has ended: "), "{error}");
    let error = fault(|r| drop(r.plies.pop()));
    assert!(error.to_string().ends_with("but after its last ply the game goes on"), "{error}");
    assert!(matches!(fault(|r| r.end.reason = Finish::Proven).fault, ReplayFault::End { .. }));
    // Stopped while moves were left: any result may be declared.
    for reason in [Finish::Proven, Finish::Resigned, Finish::Adjudicated] {
        let mut record = random_records(31, 5, 1).remove(0);
        record.plies.pop();
        record.end = RecordEnd { outcome: other(&record), reason };
        record.check(&Pairs).unwrap();
    }
}
