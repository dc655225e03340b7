//! A checkpoint comes back as it was, and damaged in any way it does not come back at all.

use super::*;
use crate::net::testing::{specs, trained};

fn checkpoint() -> Checkpoint {
    let network = specs()[0].clone();
    let info = CheckpointInfo {
        game: "toy:size=4".into(),
        encoding_version: 3,
        step: 12_000,
        samples: 6_144_000,
        generation: 17,
        run: "first-run".into(),
        elo: Some(123.456_789_012_345_67),
        licence: Some("MIT".into()),
        tool_version: "0.1.0".into(),
        network: network.clone(),
    };
    Checkpoint { info, weights: trained(&network, 1) }
}

fn read(bytes: &[u8]) -> Result<Checkpoint, CheckpointError> {
    Checkpoint::from_bytes(Path::new("a.safetensors"), bytes)
}

/// The bytes with the JSON header changed by `edit` (and its length put right).
fn with_header(bytes: &[u8], edit: impl Fn(&str) -> String) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = edit(std::str::from_utf8(&bytes[8..8 + length]).unwrap());
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &bytes[8 + length..]].concat()
}

fn replaced(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    with_header(bytes, |header| {
        assert!(header.contains(from), "{from} in {header}");
        header.replacen(from, to, 1)
    })
}

#[test]
fn a_checkpoint_round_trips_through_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.safetensors");
    let checkpoint = checkpoint();
    checkpoint.save(&path).unwrap();
    assert_eq!(Checkpoint::load(&path).unwrap(), checkpoint);
    let first = std::fs::read(&path).unwrap();
    checkpoint.save(&path).unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), first, "equal checkpoints are equal files");
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
}

#[test]
fn a_file_that_is_not_there_or_cannot_be_written_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let missing = Checkpoint::load(&folder.path().join("none.safetensors")).unwrap_err().to_string();
    assert!(missing.contains("none.safetensors"), "{missing}");
    let lost = checkpoint().save(&folder.path().join("gone/net.safetensors")).unwrap_err().to_string();
    assert!(lost.contains("gone"), "{lost}");
}

#[test]
fn every_truncation_is_noticed() {
    let bytes = checkpoint().to_bytes();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let cuts = (0..300).chain(header - 20..header + 20).chain((0..bytes.len()).step_by(97));
    for cut in cuts.chain([bytes.len() - 1]) {
        let error = read(&bytes[..cut]).unwrap_err();
        assert!(matches!(error, CheckpointError::Damaged { .. }), "{cut}: {error}");
    }
    let longer = [&bytes[..], b"x"].concat();
    assert!(matches!(read(&longer).unwrap_err(), CheckpointError::Damaged { .. }));
}

#[test]
fn every_altered_byte_is_noticed() {
    let original = checkpoint();
    let bytes = original.to_bytes();
    let header = 8 + u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    // Padding behind the JSON may change: it means nothing.
    let end = bytes[..header].iter().rposition(|&byte| byte == b'}').unwrap() + 1;
    for place in (0..end).step_by(3).chain((header..bytes.len()).step_by(101)) {
        for bit in [0, 4] {
            let mut altered = bytes.clone();
            altered[place] ^= 1 << bit;
            // White space or an escape written otherwise means the same; nothing else may pass.
            if let Ok(read) = read(&altered) {
                assert_eq!(read, original, "byte {place}, bit {bit}");
                assert!(place < end, "a weight was altered at {place}");
            }
        }
    }
}

#[test]
fn swapped_names_and_altered_descriptions_are_noticed() {
    let bytes = checkpoint().to_bytes();
    // Both normalisations of a block have the same shapes; only the digest can tell.
    let swapped = with_header(&bytes, |header| {
        header.replace("0.norm1.bias", "0.normX.bias").replace("0.norm2.bias", "0.norm1.bias").replace("normX", "norm2")
    });
    assert!(read(&swapped).unwrap_err().to_string().contains("weights were altered"));
    let relabelled = replaced(&bytes, "toy:size=4", "toy:size=5");
    assert!(read(&relabelled).unwrap_err().to_string().contains("description was altered"));
    let renamed = replaced(&bytes, "stem.conv.weight", "stem.conv.height");
    let message = read(&renamed).unwrap_err().to_string();
    assert!(message.contains("`stem.conv.weight` is missing"), "{message}");
    assert!(message.contains("`stem.conv.height` is unexpected"), "{message}");
}

#[test]
fn another_format_says_which_side_to_upgrade() {
    let bytes = checkpoint().to_bytes();
    let newer = read(&replaced(&bytes, r#"\"format\":1"#, r#"\"format\":2"#)).unwrap_err();
    assert!(matches!(newer, CheckpointError::OtherFormat { found: 2, .. }));
    assert!(newer.to_string().contains("upgrade sparring"), "{newer}");
    let older = read(&replaced(&bytes, r#"\"format\":1"#, r#"\"format\":0"#)).unwrap_err();
    assert!(older.to_string().contains("older sparring"), "{older}");
    let foreign = read(&replaced(&bytes, r#""sparring":"#, r#""somebody":"#)).unwrap_err();
    assert!(matches!(foreign, CheckpointError::Foreign { .. }), "{foreign}");
}

#[test]
fn impossible_sizes_are_refused_before_memory_is_taken() {
    for length in [u64::MAX, u64::MAX - 7, 1 << 40, 100_000_001, 9] {
        let bytes = [&length.to_le_bytes()[..], b"{}"].concat();
        assert!(matches!(read(&bytes).unwrap_err(), CheckpointError::Damaged { .. }), "{length}");
    }
    let huge = |shape: &str, end: &str| {
        let header = format!(r#"{{"a":{{"dtype":"F32","shape":{shape},"data_offsets":[0,{end}]}}}}"#);
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat()
    };
    for (shape, end) in [
        ("[4611686018427387904]", "0"),
        ("[1152921504606846976,8]", "18446744073709551608"),
        ("[144115188075855872]", "576460752303423488"),
        ("[18446744073709551616]", "0"),
        ("[4]", "16"),
    ] {
        assert!(matches!(read(&huge(shape, end)).unwrap_err(), CheckpointError::Damaged { .. }), "{shape}");
    }
    // Eight tensors whose ends add up past the largest number.
    let part = 1u64 << 61;
    let tensor = |i: u64| {
        format!(r#""t{i}":{{"dtype":"F32","shape":[{}],"data_offsets":[{},{}]}}"#, part / 4, i * part, (i + 1) * part)
    };
    let header = format!("{{{}}}", (0..7).map(tensor).collect::<Vec<_>>().join(","));
    let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes()].concat();
    assert!(matches!(read(&bytes).unwrap_err(), CheckpointError::Damaged { .. }));
}

#[test]
fn bad_numbers_are_neither_written_nor_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("net.safetensors");
    for bad in [f32::NAN, f32::INFINITY] {
        let mut checkpoint = checkpoint();
        checkpoint.weights.0.get_mut("value.out.bias").unwrap().data[1] = bad;
        let message = checkpoint.save(&path).unwrap_err().to_string();
        assert!(message.contains("`value.out.bias`") && message.contains("index 1"), "{message}");
        assert!(!path.exists());
        // Written past the check, it is still not read.
        let message = read(&checkpoint.to_bytes()).unwrap_err().to_string();
        assert!(message.contains("`value.out.bias`"), "{message}");
    }
    let mut negative = checkpoint();
    negative.weights.0.get_mut("stem.norm.running_var").unwrap().data[0] = -1.0;
    assert!(read(&negative.to_bytes()).unwrap_err().to_string().contains("`stem.norm.running_var`"));
}

#[test]
fn nothing_large_is_made_of_a_long_description() {
    let bytes = checkpoint().to_bytes();
    let zeros = "0,".repeat(MAX_DESCRIPTION / 2);
    let long = replaced(&bytes, "\\\"game\\\":", &format!("\\\"x\\\":[{zeros}0],\\\"game\\\":"));
    let error = read(&long).unwrap_err().to_string();
    assert!(error.contains("more than that of any network"), "{error}");
    let longer = with_header(&bytes, |header| format!("{header}{}", " ".repeat(MAX_HEADER as usize)));
    let error = read(&longer).unwrap_err().to_string();
    assert!(error.contains("header is longer"), "{error}");
}
