//! Whether to write in colour: the option `--color` of the verbs that draw boards.

use anstream::{AutoStream, ColorChoice};

/// `--color`, to be flattened into the arguments of a verb.
#[derive(clap::Args, Clone, Copy)]
pub(super) struct Color {
    /// Draw boards in colour; `auto`: in a terminal, unless NO_COLOR is set
    #[arg(long = "color", value_name = "WHEN", value_enum, default_value_t = When::Auto)]
    when: When,
}

#[derive(Clone, Copy, clap::ValueEnum)]
enum When {
    Auto,
    Always,
    Never,
}

impl Color {
    /// Whether to write to stdout in colour.
    pub(super) fn of_stdout(self) -> bool {
        match self.when {
            When::Always => true,
            When::Never => false,
            When::Auto => AutoStream::choice(&std::io::stdout()) != ColorChoice::Never,
        }
    }
}
