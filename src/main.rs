//! The `sparring` binary: see [`sparring::cli`].

fn main() -> std::process::ExitCode {
    sparring::cli::main()
}
