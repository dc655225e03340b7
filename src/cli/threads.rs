//! How many threads work: the option `--threads` of the verbs that play or judge many games.

use crate::util::machine::cores;

/// `--threads`, to be flattened into the arguments of a verb.
#[derive(clap::Args, Clone, Copy)]
pub(super) struct Threads {
    /// Worker threads [default: all cores]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=4096))]
    threads: Option<u32>,
}

impl Threads {
    /// The number that was given, else that of the cores.
    pub(super) fn count(self) -> usize {
        self.threads.map_or_else(cores, |threads| threads as usize)
    }
}
