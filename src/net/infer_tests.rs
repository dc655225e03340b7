//! The engines against the network that was trained, against each other, and against themselves.

use super::*;
use crate::net::testing::{planes, specs, trained};
use crate::net::torch::TorchNet;
use tch::{Device, Tensor};

/// Policy and value logits of a batch.
type Logits = (Vec<f32>, Vec<f32>);

fn run(worker: &mut dyn Inference, planes: &[f32], batch: usize) -> Logits {
    worker.input(batch).unwrap().copy_from_slice(planes);
    let heads = worker.run(batch).unwrap();
    (heads.policy.to_vec(), heads.value.to_vec())
}

fn factory(spec: &NetSpec, weights: &Weights, engine: Engine, precision: Precision) -> InferenceFactory {
    let choice = EngineChoice { engine, precision, device: DeviceName::Cpu };
    InferenceFactory::open(spec, weights, &choice).unwrap()
}

/// Every engine that is installed, in the precisions that every CPU can do.
fn setups() -> Vec<(Engine, Precision)> {
    let mut setups = vec![(Engine::Libtorch, Precision::F32), (Engine::Libtorch, Precision::Bf16)];
    match available().openvino {
        Ok(()) => setups.extend([(Engine::Openvino, Precision::F32), (Engine::Openvino, Precision::Bf16)]),
        Err(why) => eprintln!("without OpenVINO: {why}"),
    }
    setups
}

fn reference(spec: &NetSpec, weights: &Weights, planes: &[f32], batch: usize) -> Logits {
    let net = TorchNet::new(spec, weights, Device::Cpu).unwrap();
    let input = spec.input;
    let shape = [batch, input.channels, input.height, input.width].map(|size| size as i64);
    let _guard = tch::no_grad_guard();
    let heads = net.forward(&Tensor::from_slice(planes).view(shape.as_slice()), false).unwrap();
    let numbers = |x: Tensor| Vec::<f32>::try_from(x.reshape([-1])).unwrap();
    (numbers(heads.policy), numbers(heads.value))
}

fn softmax(logits: &[f32]) -> Vec<f64> {
    let largest = logits.iter().copied().fold(f32::MIN, f32::max);
    let terms: Vec<f64> = logits.iter().map(|x| f64::from(x - largest).exp()).collect();
    let sum: f64 = terms.iter().sum();
    terms.into_iter().map(|x| x / sum).collect()
}

fn best(values: &[f32]) -> usize {
    (0..values.len()).max_by(|&a, &b| values[a].total_cmp(&values[b])).unwrap()
}

#[test]
fn float32_agrees_with_the_trained_network_on_every_engine() {
    for (index, spec) in specs().iter().enumerate() {
        let weights = trained(spec, index as u64);
        let planes = planes(spec, 50, 9);
        let (policy, value) = reference(spec, &weights, &planes, 50);
        assert!(policy.iter().any(|x| x.abs() > 0.5), "logits of a network with opinions");
        for (engine, precision) in setups().into_iter().filter(|setup| setup.1 == Precision::F32) {
            let mut worker = factory(spec, &weights, engine, precision).worker().unwrap();
            let (p, v) = run(worker.as_mut(), &planes, 50);
            assert_eq!((p.len(), v.len()), (policy.len(), value.len()));
            let pairs = policy.iter().zip(&p).chain(value.iter().zip(&v));
            let worst = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
            assert!(worst < 1e-4, "{engine}, {spec}: {worst}");
        }
    }
}

#[test]
fn bfloat16_agrees_in_what_matters() {
    let count = 120;
    for (index, spec) in specs().iter().enumerate() {
        let weights = trained(spec, 20 + index as u64);
        let planes = planes(spec, count, 10);
        let (policy, value) = reference(spec, &weights, &planes, count);
        for (engine, precision) in setups().into_iter().filter(|setup| setup.1 == Precision::Bf16) {
            let mut worker = factory(spec, &weights, engine, precision).worker().unwrap();
            let (p, v) = run(worker.as_mut(), &planes, count);
            let (mut same, mut divergence, mut difference) = (0, 0.0, 0.0);
            for position in 0..count {
                let actions = spec.action_count();
                let row = |x: &[f32]| x[position * actions..][..actions].to_vec();
                let (a, b) = (row(&policy), row(&p));
                // A near tie may fall either way.
                same += usize::from(a[best(&a)] - a[best(&b)] < 0.05);
                let (pa, pb) = (softmax(&a), softmax(&b));
                divergence += pa.iter().zip(&pb).map(|(x, y)| x * (x / y).ln()).sum::<f64>() / count as f64;
                let value_of = |x: &[f32]| {
                    let wdl = softmax(&x[position * 3..][..3]);
                    wdl[0] - wdl[2]
                };
                difference += (value_of(&value) - value_of(&v)).abs() / count as f64;
            }
            let seen = format!("{engine}, {spec}: {same} of {count} best moves, KL {divergence}, value {difference}");
            assert!(same * 100 >= count * 98 && divergence < 0.002 && difference < 0.01, "{seen}");
        }
    }
}

#[test]
fn a_position_has_one_result_whatever_the_batch_its_order_and_the_thread() {
    for (index, spec) in specs().iter().enumerate() {
        let weights = trained(spec, 40 + index as u64);
        let (length, actions) = (spec.input.len(), spec.action_count());
        let all = planes(spec, 128, 11);
        for (engine, precision) in setups() {
            let name = format!("{engine} {precision}, {spec}");
            let factory = factory(spec, &weights, engine, precision);
            let mut worker = factory.worker().unwrap();
            let whole = run(worker.as_mut(), &all, 128);
            for batch in [1, 2, 3, 5, 7, 16, 31, 33, 64, 100, 127] {
                for first in [0, 128 - batch] {
                    let part = run(worker.as_mut(), &all[first * length..(first + batch) * length], batch);
                    assert_eq!(part.0, whole.0[first * actions..(first + batch) * actions], "{name}, {batch}");
                    assert_eq!(part.1, whole.1[first * 3..(first + batch) * 3], "{name}, {batch}");
                }
            }
            let backwards: Vec<f32> = all.chunks(length).rev().flatten().copied().collect();
            let turned = std::thread::scope(|scope| {
                scope.spawn(|| run(factory.worker().unwrap().as_mut(), &backwards, 128)).join().unwrap()
            });
            assert!(turned.0.chunks(actions).rev().flatten().eq(&whole.0), "{name}");
            assert!(turned.1.chunks(3).rev().flatten().eq(&whole.1), "{name}");
        }
    }
}

#[test]
fn a_size_that_comes_back_often_is_no_longer_padded_and_gives_the_same() {
    let spec = &specs()[0];
    let weights = trained(spec, 60);
    let planes = planes(spec, 5, 12);
    for (engine, precision) in setups() {
        let mut worker = factory(spec, &weights, engine, precision).worker().unwrap();
        let first = run(worker.as_mut(), &planes, 5);
        for _ in 0..250 {
            assert_eq!(run(worker.as_mut(), &planes, 5), first);
        }
    }
}

#[test]
fn batches_that_cannot_be_are_errors() {
    let spec = &specs()[0];
    let weights = trained(spec, 61);
    for (engine, precision) in setups() {
        let mut worker = factory(spec, &weights, engine, precision).worker().unwrap();
        let most = worker.max_batch();
        for batch in [0, most + 1] {
            assert!(worker.input(batch).unwrap_err().to_string().contains("allowed are 1 to"));
        }
        assert!(worker.run(5).unwrap_err().to_string().contains("were not written"));
        assert!(worker.input(3).unwrap().iter().all(|&x| x == 0.0));
        worker.input(3).unwrap().fill(f32::NAN);
        assert!(worker.input(3).unwrap().iter().all(|&x| x == 0.0), "the buffer is cleared");
    }
}

#[test]
fn a_factory_refuses_weights_of_another_network_and_says_what_it_chose() {
    let specs = specs();
    let weights = trained(&specs[0], 62);
    let opened = InferenceFactory::open(&specs[1], &weights, &EngineChoice::default());
    assert!(matches!(opened.unwrap_err(), OpenError::Weights(_)));
    let said = factory(&specs[0], &weights, Engine::Libtorch, Precision::F32).to_string();
    assert!(said.starts_with("libtorch f32 on cpu"), "{said}");
}
