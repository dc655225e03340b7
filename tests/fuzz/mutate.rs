//! Sound inputs made unsound.

use sparring::util::rng::Stream;

/// What parsers stumble over, between any two bytes.
const WORDS: [&str; 18] = [
    "18446744073709551615",
    "-1",
    "0",
    "1e999",
    "4294967296",
    "null",
    "[[[[[[[[[[",
    "{\"a\":",
    "\u{0}",
    "\u{1b}[2J",
    "\n",
    " ",
    "\"",
    "9",
    "ä",
    "\u{1d54f}",
    ",",
    "/",
];

/// Numbers that a length or an offset is not.
const NUMBERS: [u64; 8] = [0, 1, 0x7fff_ffff, 0xffff_ffff, 1 << 40, i64::MAX as u64, u64::MAX, 1 << 24];

/// One of `seeds`, changed in one to four places.
pub fn mutated(seeds: &[Vec<u8>], random: &mut Stream) -> Vec<u8> {
    let mut bytes = seeds[random.below(seeds.len())].clone();
    for _ in 0..=random.below(4) {
        change(&mut bytes, seeds, random);
    }
    bytes
}

/// A place in `bytes`, in every other case among the first, where heads are.
fn place(bytes: &[u8], random: &mut Stream) -> usize {
    let most = if random.below(2) == 0 { bytes.len().min(64) } else { bytes.len() };
    random.below(most + 1)
}

/// A piece of `bytes`, mostly a short one.
fn piece(bytes: &[u8], random: &mut Stream) -> std::ops::Range<usize> {
    let from = random.below(bytes.len() + 1);
    let most = [8, 64, usize::MAX][random.below(3)].min(bytes.len() - from);
    from..from + random.below(most + 1)
}

fn change(bytes: &mut Vec<u8>, seeds: &[Vec<u8>], random: &mut Stream) {
    let at = place(bytes, random);
    match random.below(9) {
        0 | 1 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte ^= 1 << random.below(8);
            }
        }
        2 => {
            if let Some(byte) = bytes.get_mut(at) {
                *byte = random.bits() as u8;
            }
        }
        3 => bytes.truncate(at),
        4 => {
            let gone = piece(bytes, random);
            bytes.drain(gone);
        }
        5 => {
            let other = &seeds[random.below(seeds.len())];
            let inserted = other[piece(other, random)].to_vec();
            bytes.splice(at..at, inserted);
        }
        6 => {
            let width = [2, 4, 8][random.below(3)];
            let number = NUMBERS[random.below(NUMBERS.len())].to_le_bytes();
            // Fields lie at multiples of their width.
            let at = at / 2 * 2;
            if let Some(field) = bytes.get_mut(at..at + width) {
                field.copy_from_slice(&number[..width]);
            }
        }
        7 => {
            let word = WORDS[random.below(WORDS.len())];
            bytes.splice(at..at, word.bytes());
        }
        _ => {
            // A number in a text becomes another one.
            let digit = |byte: &u8| byte.is_ascii_digit();
            let Some(from) = bytes[at..].iter().position(digit).map(|more| at + more) else { return };
            let end = bytes[from..].iter().position(|byte| !digit(byte)).map_or(bytes.len(), |more| from + more);
            let word =
                if random.below(2) == 0 { WORDS[random.below(5)].to_owned() } else { random.below(300).to_string() };
            bytes.splice(from..end, word.into_bytes());
        }
    }
}
