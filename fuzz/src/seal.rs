//! Checksums put right, as somebody would who means harm: none of them is a protection against that.
//!
//! Each function gives the bytes with their checksums, and the lengths beside them, made to fit; `None` where there is not
//! even the form into which one could be written.

use std::collections::BTreeMap;

use serde_json::{Map, Value};
use sparring::net::{WeightTensor, Weights, description_digest};

fn crc(parts: &[&[u8]]) -> u32 {
    let mut sum = crc32fast::Hasher::new();
    parts.iter().for_each(|part| sum.update(part));
    sum.finalize()
}

fn number(bytes: &[u8], at: usize) -> Option<usize> {
    Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?) as usize)
}

/// A state file: head of 24 bytes with the length of the contents in the last 8, contents, checksum.
pub fn run_state(data: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = data.to_vec();
    let end = bytes.len().checked_sub(4).filter(|&end| end >= 24)?;
    bytes[16..24].copy_from_slice(&(end as u64 - 24).to_le_bytes());
    let sum = crc(&[&bytes[..end]]);
    bytes[end..].copy_from_slice(&sum.to_le_bytes());
    Some(bytes)
}

/// A file of records: a header of 16 bytes, chunks with a head of 16; in both the last 4 bytes are the checksum.
pub fn records(data: &[u8]) -> Option<Vec<u8>> {
    let mut bytes = data.to_vec();
    let sum = crc(&[bytes.get(..12)?]);
    bytes.get_mut(12..16)?.copy_from_slice(&sum.to_le_bytes());
    let mut at = 16;
    while let Some(stored) = number(&bytes, at).filter(|_| at + 16 <= bytes.len()) {
        let body = at + 16;
        let stored = stored.min(bytes.len() - body);
        bytes[at..at + 4].copy_from_slice(&(stored as u32).to_le_bytes());
        let sum = crc(&[&bytes[at..at + 12], &bytes[body..body + stored]]);
        bytes[at + 12..body].copy_from_slice(&sum.to_le_bytes());
        at = body + stored;
    }
    Some(bytes)
}

/// Lines of JSON whose last member is the checksum of what stands before it.
pub fn games_file(data: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(data).ok()?;
    let sealed = text.split_inclusive('\n').map(|line| match line.rsplit_once(",\"check\":\"") {
        Some((body, _)) => format!("{body},\"check\":\"{:08x}\"}}\n", crc(&[body.as_bytes()])),
        None => line.to_owned(),
    });
    Some(sealed.collect::<String>().into_bytes())
}

/// A safetensors file taken apart: its header as JSON, and what follows.
fn safetensors(data: &[u8]) -> Option<(Map<String, Value>, &[u8])> {
    let length = u64::from_le_bytes(data.get(..8)?.try_into().ok()?);
    let (header, tensors) = data[8..].split_at_checked(usize::try_from(length).ok()?)?;
    match serde_json::from_slice(header).ok()? {
        Value::Object(header) => Some((header, tensors)),
        _ => None,
    }
}

/// The file again, with this text in its metadata.
fn with_metadata(mut header: Map<String, Value>, tensors: &[u8], key: &str, text: &Value) -> Option<Vec<u8>> {
    *header.get_mut("__metadata__")?.get_mut(key)? = Value::String(text.to_string());
    let header = Value::Object(header).to_string();
    Some([&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), tensors].concat())
}

/// The metadata's JSON text under `key`.
fn metadata(header: &Map<String, Value>, key: &str) -> Option<Value> {
    serde_json::from_str(header.get("__metadata__")?.get(key)?.as_str()?).ok()
}

/// The tensors by name, those that can be.
fn tensors(header: &Map<String, Value>, data: &[u8]) -> BTreeMap<String, WeightTensor> {
    let tensor = |info: &Value| {
        let whole = |value: &Value| value.as_u64().and_then(|number| usize::try_from(number).ok());
        let shape = info.get("shape")?.as_array()?.iter().map(whole).collect::<Option<_>>()?;
        let [begin, end] = info.get("data_offsets")?.as_array()?.iter().map(whole).collect::<Option<Vec<_>>>()?[..]
        else {
            return None;
        };
        let numbers = data.get(begin..end)?.chunks_exact(4);
        let numbers = numbers.map(|four| f32::from_le_bytes(four.try_into().expect("chunks of four bytes")));
        Some(WeightTensor { shape, data: numbers.collect() })
    };
    header.iter().filter_map(|(name, info)| Some((name.clone(), tensor(info)?))).collect()
}

/// A checkpoint: digests of the description and of the weights.
pub fn checkpoint(data: &[u8]) -> Option<Vec<u8>> {
    const KEY: &str = "sparring";
    let (header, rest) = safetensors(data)?;
    let mut envelope = metadata(&header, KEY)?;
    let info = envelope.get("info").cloned().unwrap_or(Value::Null);
    let map = envelope.as_object_mut()?;
    map.insert("info_digest".to_owned(), description_digest(&info).into());
    map.insert("weights_digest".to_owned(), Weights(tensors(&header, rest)).digest().into());
    with_metadata(header, rest, KEY, &envelope)
}

/// A trainer's state: one checksum of the header's other members and of all tensors, group after group.
pub fn training_state(data: &[u8]) -> Option<Vec<u8>> {
    const KEY: &str = "sparring_training_state";
    let (header, rest) = safetensors(data)?;
    let mut head = metadata(&header, KEY)?;
    let count = |name: &str| head.get(name)?.as_u64();
    let moments = head.get("moments")?.as_array()?.iter().map(|text| text.as_str().map(str::to_owned));
    let moments: Vec<String> = moments.collect::<Option<_>>()?;
    let described = (
        u32::try_from(count("format")?).ok()?,
        count("step")?,
        count("optimizer_steps")?,
        count("average_steps")?,
        head.get("optimizer")?.as_str()?,
        &moments,
    );
    let mut sum = crc32fast::Hasher::new();
    sum.update(format!("{described:?}").as_bytes());
    let tensors = tensors(&header, rest);
    for group in ["weights", "average"].into_iter().chain(moments.iter().map(String::as_str)) {
        for (name, tensor) in tensors.iter().filter(|(name, _)| name.split('/').next() == Some(group)) {
            sum.update(format!("{name}{:?}", tensor.shape).as_bytes());
            tensor.data.iter().for_each(|number| sum.update(&number.to_le_bytes()));
        }
    }
    let sum = format!("{:08x}", sum.finalize());
    head.as_object_mut()?.insert("checksum".to_owned(), sum.into());
    with_metadata(header, rest, KEY, &head)
}
