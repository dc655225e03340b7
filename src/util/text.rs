//! Texts of others: read with a limit, made fit to be shown.

use std::fs::File;
use std::io::{Error, ErrorKind, Read as _, Result};
use std::path::Path;

/// No text that a person hands in (positions, a saved game) has more bytes.
const MAX_BYTES: u64 = 64 << 20;

/// The longest line that is shown.
const LONGEST: usize = 1000;

/// The text of a file that a person names, which may be anything: a device without end too.
///
/// # Errors
/// When it cannot be read, is no text, or is larger than 64 MB.
pub fn read_text(path: &Path) -> Result<String> {
    let mut text = String::new();
    let read = File::open(path)?.take(MAX_BYTES + 1).read_to_string(&mut text)?;
    if read as u64 > MAX_BYTES {
        return Err(Error::new(ErrorKind::FileTooLarge, format!("it is larger than {} MB", MAX_BYTES >> 20)));
    }
    // Some editors begin a file with a mark of its byte order.
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}

/// What an exception of a C++ library says, in one line: without where in its sources it was raised, without the stack.
pub fn one_line(exception: &str) -> String {
    let stack = |line: &str| line.starts_with("Exception raised from") || line.starts_with("frame #");
    let lines = exception.lines().map(str::trim).take_while(|line| !stack(line));
    let told: Vec<&str> = lines.filter(|line| !line.is_empty() && !line.starts_with("Exception from")).collect();
    cut(&told.join(" "))
}

/// Whether a character steers a terminal or turns the direction in which text is shown, and shows nothing itself.
fn steers(sign: char) -> bool {
    let turns = |sign| matches!(sign, '\u{61c}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}');
    sign.is_control() || turns(sign)
}

/// `text` on one line, with what would steer a terminal written out (`\u{1b}`): names in files of others may hold anything.
pub fn plain(text: &str) -> String {
    let sign = |sign: char| if steers(sign) { sign.escape_debug().to_string() } else { sign.to_string() };
    if text.contains(steers) { text.chars().map(sign).collect() } else { text.to_owned() }
}

/// A JSON document as it is shown: with the same meaning, and nothing in it that steers a terminal.
pub fn plain_json(document: &str) -> String {
    // Such characters stand only within strings, but for the line breaks of the layout.
    let sign =
        |sign: char| if sign != '\n' && steers(sign) { format!("\\u{:04x}", sign as u32) } else { sign.to_string() };
    document.chars().map(sign).collect()
}

/// `text` with each line made [`plain`], and what is beyond a thousand characters of it left out.
pub fn cut(text: &str) -> String {
    let cut = |line: &str| match line.char_indices().nth(LONGEST) {
        None => line.to_owned(),
        Some((end, _)) => format!("{}... ({} bytes)", &line[..end], line.len()),
    };
    text.split('\n').map(|line| cut(&plain(line))).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn exceptions_are_told_in_one_line() {
        let torch = "size mismatch, got 3\nException raised from f at x.cpp:3 (most recent call first):\nframe #0: g";
        assert_eq!(one_line(torch), "size mismatch, got 3");
        let openvino = "Exception from src/core.cpp:130:\nException from y.cpp:9:\nmodel is too large\n\n\n";
        assert_eq!(one_line(openvino), "model is too large");
        assert_eq!(one_line("plain"), "plain");
    }

    #[test]
    fn long_lines_are_cut_at_a_character() {
        let long = "ä".repeat(LONGEST + 1);
        let text = cut(&format!("short\n{long}\n"));
        assert_eq!(text, format!("short\n{}... ({} bytes)\n", "ä".repeat(LONGEST), long.len()));
        assert_eq!(cut(&"x".repeat(LONGEST)), "x".repeat(LONGEST));
    }

    #[test]
    fn nothing_that_is_shown_steers_a_terminal() {
        assert_eq!(plain("a\u{1b}[2Jb\n\u{9b}ä"), "a\\u{1b}[2Jb\\n\\u{9b}ä");
        assert_eq!(cut("one\u{7}\ntwo\r"), "one\\u{7}\ntwo\\r");
        assert_eq!(plain("a\u{202e}b\u{200b}"), "a\\u{202e}b\\u{200b}");
        let document = "{\n  \"name\": \"a\u{9b}b\u{202e}cä\"\n}";
        assert_eq!(plain_json(document), "{\n  \"name\": \"a\\u009bb\\u202ecä\"\n}");
    }
}
