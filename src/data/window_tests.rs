use super::super::file;
use super::super::testgame::Pairs;
use super::super::testrecords::random_records;
use super::*;
use crate::data::quant;

fn steps_of(records: &[GameRecord], params: &SampleParams) -> u64 {
    let startpos = Pairs.state_text(&Pairs.startpos());
    records.iter().map(|record| u64::from(PackedGame::new(&Pairs, record, &startpos, params).unwrap().steps)).sum()
}

#[test]
fn the_law_is_katagos() {
    let params = ReplayParams { min_positions: 250_000, ..ReplayParams::default() };
    // c (1 + beta ((N/c)^alpha - 1) / alpha), computed by hand for N = 16 c: 1 + 0.4 (8 - 1) / 0.75.
    assert!((params.window_positions(4_000_000.0) - 250_000.0 * (1.0 + 0.4 * 7.0 / 0.75)).abs() < 1e-6);
    assert_eq!(params.window_positions(10.0), 250_000.0);
    assert_eq!(params.window_positions(250_000.0), 250_000.0);
    // Grows by beta for each position at c.
    let slope = (params.window_positions(250_100.0) - 250_000.0) / 100.0;
    assert!((slope - 0.4).abs() < 1e-3, "{slope}");
    // At the limits of the parameters: everything, and a fixed size.
    let all = ReplayParams { exponent: 1.0, expand: 1.0, ..params.clone() };
    assert!((all.window_positions(7e6) - 7e6).abs() < 1e-3);
    let fixed = ReplayParams { expand: 0.0, ..params.clone() };
    assert_eq!(fixed.window_positions(7e6), 250_000.0);
    assert_eq!(params.training_steps(1000.0, 256), 16);
    assert_eq!(params.training_steps(0.0, 256), 0);
}

#[test]
fn the_oldest_games_go_as_the_law_says() {
    let params = ReplayParams { min_positions: 300, ..ReplayParams::default() };
    let sampling = SampleParams::default();
    let mut window = ReplayWindow::new(params.clone(), sampling.clone());
    let (mut total, mut sizes) = (0, Vec::new());
    for generation in 0..30 {
        let records = random_records(61 + u64::from(generation), generation, 20);
        sizes.extend(records.iter().map(|record| steps_of(std::slice::from_ref(record), &sampling)));
        total += steps_of(&records, &sampling);
        window.push(&Pairs, &records).unwrap();
        assert_eq!(window.total_steps(), total);
        let limit = params.window_positions(window.total_positions());
        // The fewest newest games that reach the limit.
        let oldest = sizes[sizes.len() - window.games()] as f64 / 1024.0;
        assert!(window.positions() >= limit.min(window.total_positions()) - 1e-9);
        assert!(window.positions() - oldest < limit);
    }
    let stats = window.stats();
    assert!(stats.games < 300 && stats.oldest_generation > 10 && stats.newest_generation == 29, "{stats:?}");
    assert!(stats.mean_age > 2.0 && stats.mean_age < 19.0);
    assert!((stats.total_positions - total as f64 / 1024.0).abs() < 1e-9);
    assert!(stats.first_share + stats.draw_share <= 1.0 && stats.first_share > 0.2);
    assert!(stats.positions > 0 && (stats.weighted_positions - window.positions()).abs() < 1e-9);
}

#[test]
fn a_window_loaded_again_is_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let params = ReplayParams { min_positions: 200, ..ReplayParams::default() };
    let sampling = SampleParams::default();
    for max_bytes in [1 << 20, 40_000] {
        let params = ReplayParams { max_bytes, ..params.clone() };
        let mut window = ReplayWindow::new(params.clone(), sampling.clone());
        let mut totals = Vec::new();
        for generation in 0..20u32 {
            let mut records = random_records(70 + u64::from(generation), generation, 12);
            file::write(&folder.path().join(generation.to_string()), &records).unwrap();
            // Games end in any order.
            records.reverse();
            window.push(&Pairs, &records).unwrap();
            totals.push(window.total_steps());
            assert!(window.bytes_used() as u64 <= max_bytes);

            let first = params.first_generation(&totals);
            let before = if first == 0 { 0 } else { totals[first - 1] };
            let mut again = ReplayWindow::resumed(params.clone(), sampling.clone(), before);
            for generation in first..totals.len() {
                let path = folder.path().join(generation.to_string());
                again.push(&Pairs, &file::read(&path).unwrap().records).unwrap();
            }
            assert_eq!(window.stats(), again.stats());
            for step in (0..window.steps()).step_by(997) {
                let ((a, ply), (b, other)) = (window.at(step), again.at(step));
                assert_eq!(ply, other);
                assert_eq!(a.generation, b.generation);
                assert!(a.policy(ply).eq(b.policy(ply)));
                assert!(a.moves(a.plies()).eq(b.moves(b.plies())));
            }
        }
        assert!(params.first_generation(&totals) > 0, "the test reaches back less than everything");
    }
}

#[test]
fn each_step_of_weight_belongs_to_one_ply() {
    let sampling = SampleParams { fast_weight: 0.3, forced_weight: 0.0, ..SampleParams::default() };
    let records = random_records(80, 0, 25);
    let mut window = ReplayWindow::new(ReplayParams::default(), sampling);
    window.push(&Pairs, &records).unwrap();
    let mut step = 0;
    for record in &records {
        for (index, ply) in record.plies.iter().enumerate() {
            let factor = match ply.kind {
                crate::data::PlyKind::Full => 1.0,
                crate::data::PlyKind::Fast => 0.3,
                _ => 0.0,
            };
            let steps = quant::weight_steps(quant::weight(quant::weight_steps(ply.weight)) * factor);
            let place = |step| {
                let (game, ply) = window.at(step);
                (game.plies(), ply)
            };
            if steps > 0 {
                assert_eq!(place(step), (record.plies.len(), index));
                assert_eq!(place(step + u64::from(steps) - 1), (record.plies.len(), index));
            }
            step += u64::from(steps);
        }
    }
    assert_eq!(step, window.steps());
}

#[test]
fn one_bad_record_keeps_all_out() {
    let mut records = random_records(81, 0, 5);
    records[4].plies.pop();
    let mut window = ReplayWindow::new(ReplayParams::default(), SampleParams::default());
    assert!(window.push(&Pairs, &records).unwrap_err().to_string().starts_with("game 4 of generation 0"));
    assert_eq!((window.games(), window.total_steps(), window.game()), (0, 0, None));
    assert_eq!(window.stats(), WindowStats::default());
}
