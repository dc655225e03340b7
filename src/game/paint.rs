//! Drawings of positions for people: text whose parts know what they mean, shown plain or in colour.

use std::fmt::{self, Write as _};

use anstyle::{AnsiColor, Style};

use super::Player;

/// What a part of a drawing is. It decides the colour and nothing else: a drawing says the same without colours.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Ink {
    /// Ordinary text.
    #[default]
    Text,
    /// What is always the same: coordinates, lines, empty cells.
    Frame,
    /// A piece, or the name, of this player.
    Piece(Player),
    /// What belongs to this player and plays no part at present: a piece under others, a board that is decided.
    Spent(Player),
    /// Where the player to move may play.
    Open,
    /// A sign that points at something, such as the brackets round the last move.
    Mark,
}

impl Ink {
    /// Colours that can be read on dark and on light grounds and that people with any colour vision can tell apart.
    fn style(self) -> Style {
        let of = |player| match player {
            Player::First => AnsiColor::Cyan.on_default(),
            Player::Second => AnsiColor::Magenta.on_default(),
        };
        match self {
            Ink::Text => Style::new(),
            Ink::Frame => Style::new().dimmed(),
            Ink::Piece(player) => of(player).bold(),
            Ink::Spent(player) => of(player),
            Ink::Open => AnsiColor::Green.on_default().bold(),
            Ink::Mark => Style::new().bold(),
        }
    }
}

/// A drawing: lines of text, each ended by a line break, in parts with their [`Ink`].
///
/// Shown with `{}` it is plain text; [`colored`](Drawing::colored) adds ANSI escape codes. A game without wishes of
/// its own makes one of a `String`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Drawing {
    /// No part is empty, and neighbours differ in their ink.
    parts: Vec<(Ink, String)>,
}

impl Drawing {
    /// An empty drawing.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds `text` at the end.
    pub fn push(&mut self, ink: Ink, text: impl fmt::Display) {
        let text = text.to_string();
        match self.parts.last_mut() {
            _ if text.is_empty() => {}
            Some((last, before)) if *last == ink => before.push_str(&text),
            _ => self.parts.push((ink, text)),
        }
    }

    /// This drawing with `text` at the end.
    #[must_use]
    pub fn with(mut self, ink: Ink, text: impl fmt::Display) -> Self {
        self.push(ink, text);
        self
    }

    /// This drawing with `other` below it.
    #[must_use]
    pub fn above(mut self, other: Self) -> Self {
        other.parts.into_iter().for_each(|(ink, text)| self.push(ink, text));
        self
    }

    /// The text with ANSI escape codes; without them it is the plain text. No line leaves a colour on behind it.
    pub fn colored(&self) -> String {
        let mut out = String::new();
        for (ink, text) in &self.parts {
            let style = ink.style();
            for line in text.split_inclusive('\n') {
                let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
                // Spaces show no colour.
                if line.trim().is_empty() || style.is_plain() {
                    out.push_str(line);
                } else {
                    write!(out, "{style}{line}{style:#}").expect("a string takes everything");
                }
                out.push_str(end);
            }
        }
        out
    }

    /// [`colored`](Drawing::colored) or plain.
    pub fn render(&self, color: bool) -> String {
        if color { self.colored() } else { self.to_string() }
    }
}

impl fmt::Display for Drawing {
    /// The plain text.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts.iter().try_for_each(|(_, text)| out.write_str(text))
    }
}

impl<T: Into<String>> From<T> for Drawing {
    /// Ordinary text.
    fn from(text: T) -> Self {
        Self::new().with(Ink::Text, text.into())
    }
}

/// `text` without ANSI colour codes.
#[cfg(test)]
pub(crate) fn without_colors(text: &str) -> String {
    let mut parts = text.split("\x1b[");
    let first = parts.next().unwrap_or("").to_owned();
    parts.fold(first, |plain, part| plain + part.split_once('m').expect("a colour code ends with m").1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_come_and_go_with_their_parts() {
        let mut drawing = Drawing::new();
        drawing.push(Ink::Frame, "1 ");
        drawing.push(Ink::Piece(Player::First), 'x');
        drawing.push(Ink::Piece(Player::First), "\n");
        drawing.push(Ink::Text, "");
        drawing.push(Ink::Frame, "   ");
        let drawing = drawing.above("o to move\n".into());
        assert_eq!(drawing.to_string(), "1 x\n   o to move\n");
        assert_eq!(drawing.render(false), drawing.to_string());
        let colored = drawing.render(true);
        assert_eq!(colored, "\x1b[2m1 \x1b[0m\x1b[1m\x1b[36mx\x1b[0m\n   o to move\n");
        assert_eq!(without_colors(&colored), drawing.to_string());
    }

    #[test]
    fn a_part_of_several_lines_is_coloured_line_by_line() {
        let drawing = Drawing::new().with(Ink::Mark, "a\n\nb\n");
        assert_eq!(drawing.colored(), "\x1b[1ma\x1b[0m\n\n\x1b[1mb\x1b[0m\n");
    }
}
