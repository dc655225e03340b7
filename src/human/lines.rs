//! Where the lines come from that a person says.

use std::io::{self, BufRead, Write};

use crate::game::Drawing;

/// What comes of asking for a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Said {
    /// A line, without its end.
    Line(String),
    /// Bytes that are no text.
    Garbage,
    /// Ctrl-C instead of a line.
    Interrupted,
    /// The input has ended (Ctrl-D in a terminal).
    End,
}

/// A source of lines.
pub trait Lines {
    /// Asks for a line. A person is shown `prompt` on `output`; `words` are those that a line may begin with.
    ///
    /// # Errors
    /// When a stream fails.
    fn ask(&mut self, prompt: &Drawing, words: Vec<String>, output: &mut dyn Write) -> io::Result<Said>;

    /// Whether a person is there, who can say what to do when something goes wrong.
    fn has_person(&self) -> bool;

    /// Shows on `output` that something is under way; `None` takes the text away again. Does nothing where a text cannot
    /// be taken away.
    ///
    /// # Errors
    /// When the stream fails.
    fn busy(&mut self, _text: Option<&str>, _output: &mut dyn Write) -> io::Result<()> {
        Ok(())
    }
}

/// Lines of a file, a pipe, or a terminal without line editing.
#[derive(Debug)]
pub struct Plain<R> {
    input: R,
    /// Whether a person is there to be prompted, and in colour.
    prompt: Option<bool>,
}

impl<R: BufRead> Plain<R> {
    /// Lines that nobody is asked for.
    pub fn piped(input: R) -> Self {
        Self { input, prompt: None }
    }

    /// Lines of a person who is prompted, in `color` or plainly.
    pub fn prompting(input: R, color: bool) -> Self {
        Self { input, prompt: Some(color) }
    }
}

impl<R: BufRead> Lines for Plain<R> {
    fn ask(&mut self, prompt: &Drawing, _words: Vec<String>, output: &mut dyn Write) -> io::Result<Said> {
        if let Some(color) = self.prompt {
            write!(output, "{}", prompt.render(color))?;
            output.flush()?;
        }
        let mut line = String::new();
        match self.input.read_line(&mut line) {
            Ok(0) => Ok(Said::End),
            Ok(_) => Ok(Said::Line(line.trim_end_matches(['\n', '\r']).to_owned())),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => Ok(Said::Garbage),
            Err(error) => Err(error),
        }
    }

    fn has_person(&self) -> bool {
        self.prompt.is_some()
    }
}
