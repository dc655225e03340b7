//! The evaluator with a made-up engine.

use super::*;

#[test]
fn softmax_is_exact_where_it_can_be_and_survives_large_logits() {
    let mut even = [7.0f32; 4];
    assert!(softmax(&mut even));
    assert_eq!(even, [0.25; 4]);
    let mut far = [1e30f32, 0.0, -1e30];
    assert!(softmax(&mut far));
    assert_eq!(far, [1.0, 0.0, 0.0]);
    let mut two = [0.0f32, 3.0f32.ln()];
    assert!(softmax(&mut two));
    assert!((two[0] - 0.25).abs() < 1e-6 && (two[1] - 0.75).abs() < 1e-6);
    for bad in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        assert!(!softmax(&mut [0.0, bad]));
    }
}

#[test]
fn values_are_win_draw_loss() {
    let value = wdl(&[2.0, 0.0, -1e9]).expect("finite");
    assert!(value.win > value.draw && value.loss == 0.0);
    assert!((value.win + value.draw + value.loss - 1.0).abs() < 1e-6);
    assert!(wdl(&[f32::NAN, 0.0, 0.0]).is_none());
    let message = not_finite("value", &[0.0, f32::NAN, 0.0]).to_string();
    assert!(message.contains("value output 1 is NaN"), "{message}");
}
