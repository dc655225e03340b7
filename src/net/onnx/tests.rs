//! The bytes that are written, and what is read back from them.

use super::*;
use crate::net::spec::{Architecture, Mlp, Role};
use crate::net::testing::specs;
use crate::net::weights::{Digest, WeightTensor};

/// Weights that no random number and no mathematical library has touched.
fn plain(spec: &NetSpec) -> Weights {
    let tensor = |role: Role, length: usize| -> Vec<f32> {
        let step = |i: usize| (i % 13) as f32 - 6.0;
        let number = |i| if role == Role::Variance { 1.0 + (i % 3) as f32 } else { step(i) / 16.0 };
        (0..length).map(number).collect()
    };
    let infos = spec.tensors().into_iter();
    Weights(
        infos
            .map(|info| {
                let data = tensor(info.role, info.len());
                (info.name, WeightTensor { shape: info.shape, data })
            })
            .collect(),
    )
}

#[test]
fn the_bytes_are_the_known_ones() {
    let metadata = [("game".to_owned(), "toy".to_owned())];
    let digests: Vec<String> = specs()
        .iter()
        .map(|spec| {
            let mut digest = Digest::default();
            let graph = Graph::new(spec, &plain(spec)).unwrap();
            digest.bytes(&model(spec, &graph, OnnxForm::default(), &metadata, "test").encode_to_vec());
            digest.to_string()
        })
        .collect();
    // They change when the writer or a network's structure does; check the new files with ONNX's own checker
    // before the digests are replaced.
    let known = [
        "e8e874a7e98bdb6806340ee10bedf82c",
        "0b69c1d589f47a1fcdd23aa90af95114",
        "6cdebafed3fa74a9b0cc8f36197a6402",
        "aecc7ca5a95205b3276dafc729c27845",
    ];
    assert_eq!(digests, known);
}

#[test]
fn the_file_can_be_read_back() {
    let spec = &specs()[0];
    let metadata = [("game".to_owned(), "toy".to_owned())];
    let model =
        proto::Model::decode(&to_onnx(spec, &plain(spec), OnnxForm::default(), &metadata).unwrap()[..]).unwrap();
    assert_eq!((model.ir_version, model.opset_import[0].version), (8, 17));
    assert_eq!((model.metadata_props[0].key.as_str(), model.metadata_props[0].value.as_str()), ("game", "toy"));
    let graph = model.graph.unwrap();
    assert_eq!(graph.input[0].name, INPUT);
    assert_eq!(graph.output.iter().map(|output| output.name.as_str()).collect::<Vec<_>>(), [POLICY, VALUE]);
    // Everything that is read has been written before, and nothing twice.
    let mut known: Vec<&str> = graph.initializer.iter().map(|tensor| tensor.name.as_str()).collect();
    known.push(INPUT);
    for node in &graph.node {
        assert!(node.input.iter().all(|name| known.contains(&name.as_str())), "{}", node.name);
        assert!(!known.contains(&node.output[0].as_str()), "{}", node.name);
        known.push(&node.output[0]);
    }
    assert!(known.contains(&POLICY) && known.contains(&VALUE));
}

const FORMS: [OnnxForm; 4] = [
    OnnxForm { half: false, mask: false },
    OnnxForm { half: false, mask: true },
    OnnxForm { half: true, mask: false },
    OnnxForm { half: true, mask: true },
];

#[test]
fn weights_come_back_as_they_are_served() {
    for (spec, form) in specs().iter().flat_map(|spec| FORMS.map(|form| (spec, form))) {
        let mut served = Graph::new(spec, &plain(spec)).unwrap();
        if form.half {
            served.round_to_half();
        }
        let file = parse(&to_onnx(spec, &plain(spec), form, &[]).unwrap()).unwrap();
        assert_eq!(file.form(), form);
        let back = file.weights(spec).unwrap();
        assert!(Graph::new(spec, &back).unwrap() == served, "{spec}, {form:?}");
    }
}

#[test]
fn a_graph_that_is_not_ours_is_refused() {
    let spec = &specs()[0];
    let good = || proto::Model::decode(&to_onnx(spec, &plain(spec), OnnxForm::default(), &[]).unwrap()[..]).unwrap();
    let problem = |edit: &dyn Fn(&mut proto::Graph)| {
        let mut model = good();
        edit(model.graph.as_mut().unwrap());
        parse(&model.encode_to_vec()).unwrap().weights(spec).unwrap_err()
    };
    assert!(problem(&|graph| graph.node[1].op_type = "Sigmoid".into()).contains("operations"));
    assert!(problem(&|graph| graph.input[0].name = "x".into()).contains("inputs"));
    assert!(problem(&|graph| graph.output.swap(0, 1)).contains("outputs"));
    assert!(problem(&|graph| graph.initializer[0].dims[0] += 1).contains("tensors"));
    assert!(problem(&|graph| graph.initializer[0].raw_data.truncate(8)).contains("2 numbers instead of"));
    // A description that asks for more than the file holds is refused before anything is made.
    let large = NetSpec { architecture: Architecture::Mlp(Mlp { hidden: vec![8192; 16] }), ..spec.clone() };
    let bytes = good().encode_to_vec();
    assert!(parse(&bytes).unwrap().weights(&large).unwrap_err().contains("describes a network of"));
    assert!(parse(&bytes[..bytes.len() / 2]).is_err());
}

#[test]
fn nothing_large_is_made_of_a_small_file() {
    let model = |fields: Vec<u8>| -> Vec<u8> {
        let mut bytes = vec![0x3a];
        prost::encoding::encode_varint(fields.len() as u64, &mut bytes);
        [bytes, fields].concat()
    };
    // Empty nodes: two bytes each, which would become more than a hundred.
    let nodes = model([0x0a, 0].repeat(2_000_001));
    assert!(read::parse(&nodes).err().unwrap().contains("2000002 fields are more than a network of sparring has"));
    // Packed dimensions of one tensor: a byte each, which would become eight.
    let mut tensor = vec![0x0a];
    prost::encoding::encode_varint(2_000_001, &mut tensor);
    tensor.extend([1; 2_000_001]);
    let mut initializer = vec![0x2a];
    prost::encoding::encode_varint(tensor.len() as u64, &mut initializer);
    assert!(read::parse(&model([initializer, tensor].concat())).err().unwrap().contains("fields are more than"));
}

#[test]
fn what_no_file_of_ours_has_is_refused() {
    let spec = &specs()[0];
    let weights = plain(spec);
    let bytes = to_onnx(spec, &weights, OnnxForm::default(), &[]).unwrap();
    let read = |bytes: &[u8]| read::parse(bytes).unwrap().weights(spec).map(drop);
    read(&bytes).unwrap();
    // An (empty) function behind it all, the model's field 25.
    let error = read(&[&bytes[..], &[0xca, 0x01, 0]].concat()).unwrap_err();
    assert!(error.contains("(field 25 of a message)"), "{error}");
    // A second operator set.
    let error = read(&[&bytes[..], &[0x42, 0]].concat()).unwrap_err();
    assert!(error.contains("operator sets"), "{error}");
    // Data outside of the file: a tensor's field 14 is 1.
    let mut model = proto::Model::decode(&bytes[..]).unwrap();
    let graph = model.graph.take().unwrap().encode_to_vec();
    let graph = [&graph[..], &[0x2a, 2, 0x70, 1]].concat();
    let mut field = vec![0x3a];
    prost::encoding::encode_varint(graph.len() as u64, &mut field);
    let error = read(&[model.encode_to_vec(), field, graph].concat()).unwrap_err();
    assert!(error.contains("(field 14 of a message)"), "{error}");
}
