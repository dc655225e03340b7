//! One game record as bytes.
//!
//! Little-endian, columns instead of rows so that compression finds like beside like:
//!
//! ```text
//! u16 n, n bytes  game with options (UTF-8)          u32 rules version   u64 seed   u32 generation   u32 index
//! u16 n, n bytes  start position (UTF-8)             u8 outcome (0 first, 1 draw, 2 second)   u8 reason (Finish)
//! u16 plies P
//! P x u16 action   P x u8 marks   P x u16 value first   P x u16 value draw   P x u16 weight   P x u16 policy length
//! sum of lengths x u16 policy parts
//! ```
//!
//! marks: bits 0-1 the kind, bits 2-3 the proven outcome plus one, 0 for none. Numbers are on the grid of [`quant`].

use crate::game::{Action, Outcome, Player};

use super::quant;
use super::record::{Finish, GameRecord, PlyKind, PlyRecord, RecordEnd};

/// No record has fewer bytes: one without texts and plies.
pub(super) const SHORTEST_RECORD: usize = 28;

/// Bytes of one ply without its policy.
const PLY_BYTES: usize = 11;

/// Bytes that are not a game record, or a record that cannot be stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct DecodeError(pub String);

fn wrong<T>(what: impl Into<String>) -> Result<T, DecodeError> {
    Err(DecodeError(what.into()))
}

const OUTCOMES: [Outcome; 3] = [Outcome::Win(Player::First), Outcome::Draw, Outcome::Win(Player::Second)];
const KINDS: [PlyKind; 4] = [PlyKind::Opening, PlyKind::Fast, PlyKind::Full, PlyKind::Forced];
const FINISHES: [Finish; 6] =
    [Finish::Rules, Finish::Repetition, Finish::PlyCap, Finish::Proven, Finish::Resigned, Finish::Adjudicated];

fn code<T: PartialEq>(table: &[T], item: &T) -> u8 {
    table.iter().position(|entry| entry == item).expect("the table lists every value") as u8
}

/// Kind and proven outcome in one byte.
pub(super) fn marks(ply: &PlyRecord) -> u8 {
    code(&KINDS, &ply.kind) | ply.proven.map_or(0, |outcome| code(&OUTCOMES, &outcome) + 1) << 2
}

/// The kind and proven outcome of such a byte, `None` when it has bits of no meaning.
pub(super) fn unmark(marks: u8) -> Option<(PlyKind, Option<Outcome>)> {
    let proven = (marks >> 2).checked_sub(1).map(usize::from);
    match proven {
        Some(index) => Some((KINDS[usize::from(marks & 3)], Some(*OUTCOMES.get(index)?))),
        None => Some((KINDS[usize::from(marks & 3)], None)),
    }
}

/// Appends the bytes of `record` to `out`, numbers rounded as [`quant`] says.
///
/// # Errors
/// When a policy, value or weight is not what it must be, or a text or list is too long for the format (65535
/// bytes, plies or moves). Then `out` is as it was.
pub fn encode_record(record: &GameRecord, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    let before = out.len();
    let result = encode(record, out);
    if result.is_err() {
        out.truncate(before);
    }
    let name = |error: DecodeError| DecodeError(format!("game {}: {}", record.index, error.0));
    result.map_err(name)
}

fn put_text(out: &mut Vec<u8>, what: &str, text: &str) -> Result<(), DecodeError> {
    let Ok(length) = u16::try_from(text.len()) else {
        return wrong(format!("the {what} has {} bytes, at most 65535 can be stored", text.len()));
    };
    out.extend(length.to_le_bytes());
    out.extend(text.as_bytes());
    Ok(())
}

fn encode(record: &GameRecord, out: &mut Vec<u8>) -> Result<(), DecodeError> {
    put_text(out, "game's name", &record.game)?;
    out.extend(record.rules_version.to_le_bytes());
    out.extend(record.seed.to_le_bytes());
    out.extend(record.generation.to_le_bytes());
    out.extend(record.index.to_le_bytes());
    put_text(out, "start position", &record.start)?;
    out.push(code(&OUTCOMES, &record.end.outcome));
    out.push(code(&FINISHES, &record.end.reason));
    let plies = &record.plies;
    let Ok(count) = u16::try_from(plies.len()) else {
        return wrong(format!("it has {} plies, at most 65535 can be stored", plies.len()));
    };
    out.extend(count.to_le_bytes());
    for (index, ply) in plies.iter().enumerate() {
        if let Err(fault) = ply.numbers() {
            return wrong(format!("ply {index}: {fault}"));
        }
        if ply.policy.len() > usize::from(u16::MAX) {
            return wrong(format!("ply {index}: its policy has more than 65535 entries"));
        }
    }
    let values: Vec<[u16; 2]> = plies.iter().map(|ply| quant::value_parts(ply.value)).collect();
    out.extend(plies.iter().flat_map(|ply| ply.action.0.to_le_bytes()));
    out.extend(plies.iter().map(marks));
    out.extend(values.iter().flat_map(|value| value[0].to_le_bytes()));
    out.extend(values.iter().flat_map(|value| value[1].to_le_bytes()));
    out.extend(plies.iter().flat_map(|ply| quant::weight_steps(ply.weight).to_le_bytes()));
    out.extend(plies.iter().flat_map(|ply| (ply.policy.len() as u16).to_le_bytes()));
    let mut parts = Vec::new();
    for ply in plies.iter().filter(|ply| !ply.policy.is_empty()) {
        parts.clear();
        quant::parts(&ply.policy, &mut parts);
        out.extend(parts.iter().flat_map(|part| part.to_le_bytes()));
    }
    Ok(())
}

/// Bytes not yet read.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, count: usize, what: &str) -> Result<&'a [u8], DecodeError> {
        let Some((head, tail)) = self.0.split_at_checked(count) else {
            return wrong(format!("it ends within {what}"));
        };
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self, what: &str) -> Result<[u8; N], DecodeError> {
        Ok(self.take(N, what)?.try_into().expect("take returns as many bytes as asked for"))
    }

    fn u16(&mut self, what: &str) -> Result<u16, DecodeError> {
        self.array(what).map(u16::from_le_bytes)
    }

    fn u32(&mut self, what: &str) -> Result<u32, DecodeError> {
        self.array(what).map(u32::from_le_bytes)
    }

    fn text(&mut self, what: &str) -> Result<String, DecodeError> {
        let length = self.u16(what)?;
        match std::str::from_utf8(self.take(length.into(), what)?) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => wrong(format!("{what} is not UTF-8")),
        }
    }

    fn column(&mut self, count: usize, what: &str) -> Result<impl Iterator<Item = u16> + use<'a>, DecodeError> {
        let bytes = self.take(2 * count, what)?;
        Ok(bytes.chunks_exact(2).map(|pair| u16::from_le_bytes([pair[0], pair[1]])))
    }
}

/// The record of exactly these bytes. Nothing is allocated that the bytes at hand do not account for.
///
/// Whether it is a game by the rules is another question: [`GameRecord::check`].
///
/// # Errors
/// Says what part of the record is wrong.
pub fn decode_record(bytes: &[u8]) -> Result<GameRecord, DecodeError> {
    let mut input = Input(bytes);
    let game = input.text("the game's name")?;
    let rules_version = input.u32("the rules version")?;
    let seed = u64::from_le_bytes(input.array("the seed")?);
    let generation = input.u32("the generation")?;
    let index = input.u32("the index")?;
    let start = input.text("the start position")?;
    let [outcome, reason] = input.array("the result")?;
    let Some(&outcome) = OUTCOMES.get(usize::from(outcome)) else {
        return wrong(format!("outcome {outcome} is unknown"));
    };
    let Some(&reason) = FINISHES.get(usize::from(reason)) else {
        return wrong(format!("end reason {reason} is unknown"));
    };
    let count = usize::from(input.u16("the number of plies")?);
    if input.0.len() < count * PLY_BYTES {
        return wrong(format!("it ends within its {count} plies"));
    }
    let actions = input.column(count, "the moves")?;
    let marks = input.take(count, "the marks")?;
    let firsts = input.column(count, "the values")?;
    let draws = input.column(count, "the values")?;
    let weights = input.column(count, "the weights")?;
    let lengths = input.column(count, "the policy lengths")?;
    let mut plies = Vec::with_capacity(count);
    let columns = actions.zip(marks).zip(firsts.zip(draws)).zip(weights.zip(lengths)).enumerate();
    for (ply, (((action, &marks), (first, draw)), (weight, length))) in columns {
        let Some((kind, proven)) = unmark(marks) else {
            return wrong(format!("ply {ply}: marks {marks:#04x} are unknown"));
        };
        let Some(value) = quant::value([first, draw]) else {
            return wrong(format!("ply {ply}: the value exceeds 1"));
        };
        let parts = input.column(length.into(), "the policies")?;
        let mut sum = 0u64;
        let policy: Vec<f32> = parts.inspect(|&part| sum += u64::from(part)).map(quant::share).collect();
        if length > 0 && sum != u64::from(quant::ONE) {
            return wrong(format!("ply {ply}: the policy does not sum to 1"));
        }
        let weight = quant::weight(weight);
        plies.push(PlyRecord { action: Action(action), kind, value, policy, proven, weight });
    }
    if !input.0.is_empty() {
        return wrong(format!("{} bytes are left over at its end", input.0.len()));
    }
    let end = RecordEnd { outcome, reason };
    Ok(GameRecord { game, rules_version, seed, generation, index, start, plies, end })
}

#[cfg(test)]
mod tests {
    use super::super::testrecords::random_record;
    use super::*;
    use crate::util::rng::Stream;

    #[test]
    fn records_round_trip() {
        let mut stream = Stream::test(21);
        for index in 0..200 {
            let record = random_record(&mut stream, 3, index);
            let mut bytes = Vec::new();
            encode_record(&record, &mut bytes).unwrap();
            let back = decode_record(&bytes).unwrap();
            let mut again = Vec::new();
            encode_record(&back, &mut again).unwrap();
            assert_eq!(bytes, again, "rounding is a projection");
            assert_eq!(decode_record(&again).unwrap(), back);
            assert_eq!(
                (back.origin(), back.index, &back.start, back.end),
                (record.origin(), index, &record.start, record.end)
            );
            for (stored, exact) in back.plies.iter().zip(&record.plies) {
                assert_eq!((stored.action, stored.kind, stored.proven), (exact.action, exact.kind, exact.proven));
                let near = |a: f32, b: f32| (a - b).abs() < 1.1 / 65535.0;
                assert!(near(stored.value.first, exact.value.first) && near(stored.value.draw, exact.value.draw));
                assert!(stored.policy.iter().zip(&exact.policy).all(|(a, b)| near(*a, *b)));
                assert!((stored.weight - exact.weight).abs() <= 0.5 / 1024.0);
            }
        }
    }

    #[test]
    fn any_bytes_are_decoded_or_refused_but_never_panic() {
        let mut stream = Stream::test(22);
        let mut refused = 0;
        for index in 0..20 {
            let mut bytes = Vec::new();
            encode_record(&random_record(&mut stream, 3, index), &mut bytes).unwrap();
            for at in 0..bytes.len() {
                let mut damaged = bytes.clone();
                damaged[at] ^= 1 << stream.below(8);
                refused += usize::from(decode_record(&damaged).is_err());
                assert!(decode_record(&bytes[..at]).is_err(), "a record cut at {at} is not one");
            }
            bytes.push(0);
            assert!(decode_record(&bytes).is_err());
        }
        assert!(refused > 1000);
        let mut noise = vec![0; 300];
        for _ in 0..20_000 {
            noise.iter_mut().for_each(|byte| *byte = (stream.bits() & stream.bits()) as u8);
            let length = stream.below(noise.len());
            let _ = decode_record(&noise[..length]);
        }
    }

    #[test]
    fn what_cannot_be_stored_is_refused() {
        let mut stream = Stream::test(23);
        let mut record = random_record(&mut stream, 0, 7);
        record.plies[0].value.first = f32::NAN;
        let mut out = vec![1, 2];
        let error = encode_record(&record, &mut out).unwrap_err().to_string();
        assert!(error.starts_with("game 7: ply 0: the value"), "{error}");
        assert_eq!(out, [1, 2]);
        let mut record = random_record(&mut stream, 0, 8);
        record.start = "x".repeat(70_000);
        assert!(encode_record(&record, &mut out).unwrap_err().to_string().contains("start position"));
    }
}
