//! An analysis shown while it goes on.

use std::io::{IsTerminal as _, Write as _};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shows on stderr how far a search is: in a terminal a text that is drawn again in its place, elsewhere lines.
pub struct Live {
    /// The text in its place; absent without a terminal.
    place: Option<ProgressBar>,
}

impl Live {
    /// Looks whether stderr is a terminal.
    pub fn new() -> Self {
        let place = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            bar.set_style(ProgressStyle::with_template("{msg}").expect("the template is well-formed"));
            bar
        });
        Self { place }
    }

    /// Whether whole tables can be shown, rather than lines.
    pub fn is_terminal(&self) -> bool {
        self.place.is_some()
    }

    /// How often it should be told: lines of a search with an end of its own are rarer.
    pub fn pace(&self, endless: bool) -> Duration {
        match (&self.place, endless) {
            (Some(_), _) => Duration::from_millis(250),
            (None, true) => Duration::from_secs(1),
            (None, false) => Duration::from_secs(5),
        }
    }

    /// Shows `text` in the place of the last one, or below it without a terminal.
    pub fn show(&self, text: &str) {
        match &self.place {
            Some(bar) => bar.set_message(text.to_owned()),
            // Nobody may be listening; that is no reason to stop.
            None => drop(writeln!(std::io::stderr(), "{text}")),
        }
    }

    /// Clears the place: the result comes now.
    pub fn clear(&self) {
        if let Some(bar) = &self.place {
            bar.finish_and_clear();
        }
    }
}

impl Default for Live {
    fn default() -> Self {
        Self::new()
    }
}
