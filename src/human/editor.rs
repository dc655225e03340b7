//! Lines typed in a terminal: editing, history, completion.

use std::io::{self, Write};

use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::MemHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Helper};

use super::lines::{Lines, Said};
use crate::game::Drawing;

/// Lines that a person types in the terminal that the process runs in.
pub struct Editor {
    inner: rustyline::Editor<Words, MemHistory>,
    color: bool,
}

impl Editor {
    /// Takes hold of the terminal; the prompt is shown in `color` or plainly.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn open(color: bool) -> io::Result<Self> {
        let config = Config::builder().completion_type(CompletionType::List).auto_add_history(true).build();
        let mut inner = rustyline::Editor::with_history(config, MemHistory::new()).map_err(failure)?;
        inner.set_helper(Some(Words::default()));
        Ok(Self { inner, color })
    }
}

fn failure(error: ReadlineError) -> io::Error {
    match error {
        ReadlineError::Io(error) => error,
        other => io::Error::other(other),
    }
}

impl Lines for Editor {
    fn ask(&mut self, prompt: &Drawing, words: Vec<String>, output: &mut dyn Write) -> io::Result<Said> {
        output.flush()?;
        self.inner.set_helper(Some(Words(words)));
        match self.inner.readline(&(prompt.to_string(), prompt.render(self.color))) {
            Ok(line) => Ok(Said::Line(line)),
            Err(ReadlineError::Eof) => Ok(Said::End),
            Err(ReadlineError::Interrupted) => Ok(Said::Interrupted),
            Err(error) => Err(failure(error)),
        }
    }

    fn has_person(&self) -> bool {
        true
    }

    fn busy(&mut self, text: Option<&str>, output: &mut dyn Write) -> io::Result<()> {
        // To the beginning of the line, and erase it.
        write!(output, "\r\x1b[K{}", text.unwrap_or(""))?;
        output.flush()
    }
}

/// What Tab completes the first word of a line to.
#[derive(Default)]
struct Words(Vec<String>);

impl Words {
    /// Where the word begins that the cursor at `at` stands behind, and what it can become.
    fn complete(&self, line: &str, at: usize) -> (usize, Vec<String>) {
        let before = &line[..at];
        let word = before.trim_start();
        if word.contains(char::is_whitespace) {
            return (at, Vec::new());
        }
        let found = self.0.iter().filter(|candidate| candidate.starts_with(word)).cloned().collect();
        (before.len() - word.len(), found)
    }
}

impl Completer for Words {
    type Candidate = String;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(Words::complete(self, line, at))
    }
}

impl Hinter for Words {
    type Hint = String;
}

impl Highlighter for Words {}
impl Validator for Words {}
impl Helper for Words {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_word_is_completed() {
        let words = Words(["a1", "a2", "b1", "moves"].map(String::from).to_vec());
        let complete = |line: &str| words.complete(line, line.len());
        assert_eq!(complete("a"), (0, vec!["a1".to_owned(), "a2".to_owned()]));
        assert_eq!(complete("  mo"), (2, vec!["moves".to_owned()]));
        assert_eq!(complete("").1.len(), 4);
        assert_eq!(complete("save a"), (6, vec![]));
        assert_eq!(words.complete("axyz", 1).1.len(), 2);
    }
}
