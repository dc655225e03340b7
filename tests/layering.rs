//! Holds the layers of the crate: reads the sources and compares what they import with two tables.
//!
//! The check is textual: comments are left out, then every path that starts with `crate::MODULE` or with
//! the name of a dependency counts. Test code (`tests.rs`, `*_tests.rs`, folders `tests`, and what follows the first `#[cfg(test)]`
//! of a file) may use real games besides. `super::` must not lead out of a module.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What each module of `src/` may import, from the lowest layer up. A new module needs a row.
const LAYERS: &[(&str, &[&str])] = &[
    ("util", &[]),
    ("game", &["util"]),
    ("games", &["game", "util"]),
    ("eval", &["game", "util"]),
    ("search", &["eval", "game", "util"]),
    ("data", &["game", "util"]),
    ("net", &["eval", "game", "util"]),
    ("play", &["search", "eval", "data", "game", "util"]),
    ("train", &["net", "data", "game", "util"]),
    ("run", &["train", "play", "net", "data", "search", "eval", "games", "game", "util"]),
    ("arena", &["run", "play", "net", "data", "games", "game", "util"]),
    ("experiment", &["arena", "run", "play", "net", "games", "game", "util"]),
    ("analyze", &["play", "search", "eval", "game", "util"]),
    ("ugi", &["analyze", "run", "train", "play", "net", "data", "search", "eval", "games", "game", "util"]),
    ("human", &["ugi", "run", "play", "game", "util"]),
    ("export", &["net", "eval", "game", "util"]),
    ("bench", &["run", "train", "play", "net", "data", "search", "eval", "games", "game", "util"]),
    (
        "cli",
        &[
            "human",
            "export",
            "bench",
            "ugi",
            "analyze",
            "experiment",
            "arena",
            "run",
            "train",
            "play",
            "net",
            "data",
            "search",
            "eval",
            "games",
            "game",
            "util",
        ],
    ),
];

/// What test code may import besides, in modules above it: real games to try things on.
const FOR_TESTS: &str = "games";

/// Where a dependency may be used.
enum Place {
    /// Anywhere: small ones without a policy of their own.
    Anywhere,
    /// Below these paths of `src/`.
    In(&'static [&'static str]),
    /// In one single file below this path of `src/`.
    OneFile(&'static str),
    /// Not in code.
    Nowhere,
}
use Place::{Anywhere, In, Nowhere, OneFile};

/// Where each dependency of Cargo.toml may be used. A new dependency needs a row.
const CRATES: &[(&str, Place)] = &[
    ("anstream", In(&["cli/"])),
    ("anstyle", In(&["game/"])),
    ("bytemuck", Anywhere),
    ("crc32fast", Anywhere),
    ("schemars", Anywhere),
    ("serde", Anywhere),
    ("strsim", Anywhere),
    ("thiserror", Anywhere),
    ("clap", In(&["cli/"])),
    ("fs4", In(&["util/"])),
    ("console", In(&["cli/"])),
    ("half", In(&["net/"])),
    ("indicatif", In(&["run/", "analyze/", "cli/"])),
    ("jsonc-parser", In(&["run/", "cli/"])),
    ("nix", In(&["play/"])),
    ("openvino", In(&["net/", "cli/doctor.rs"])),
    ("openvino-sys", In(&["net/", "cli/doctor.rs"])),
    ("prost", In(&["net/"])),
    ("rand_core", In(&["util/"])),
    ("rand_distr", In(&["util/"])),
    ("rand_xoshiro", In(&["util/"])),
    ("protobuf", OneFile("run/")),
    ("plotters", In(&["arena/"])),
    ("libc", In(&["util/"])),
    ("rustyline", In(&["human/"])),
    ("rayon", In(&["search/", "play/", "train/"])),
    ("safetensors", In(&["net/", "train/"])),
    ("shlex", In(&["run/"])),
    ("serde_json", In(&["net/", "train/", "run/", "arena/", "experiment/", "ugi/", "export/", "bench/", "cli/"])),
    ("signal-hook", In(&["run/", "cli/"])),
    ("tch", In(&["net/", "train/", "cli/doctor.rs"])),
    ("tensorboard-proto", OneFile("run/")),
    ("tensorboard-rs", OneFile("run/")),
    ("torch-sys", Nowhere),
    ("tract-onnx", In(&["export/"])),
    ("zip", In(&["net/"])),
    ("zstd", In(&["data/"])),
];

/// Files of `src/games/` that are no game, and that games may therefore import.
const SHARED_BY_GAMES: &[&str] = &["mod"];

/// A source file: its path below `src/` with `/` between folders, and its text without comments.
struct Source {
    path: String,
    code: String,
}

impl Source {
    /// The module that the file belongs to: `net` for `net/onnx.rs` and for `net.rs`.
    fn module(&self) -> &str {
        let first = self.path.split('/').next().unwrap_or(&self.path);
        first.strip_suffix(".rs").unwrap_or(first)
    }

    /// The code of the program and that of its tests.
    fn parts(&self) -> (&str, &str) {
        if self.path.ends_with("tests.rs") || self.path.contains("/tests/") {
            return ("", &self.code);
        }
        self.code.split_at(self.code.find("#[cfg(test)]").unwrap_or(self.code.len()))
    }

    /// The game that the file is of, `zener` for `games/zener.rs` and `games/zener/moves.rs`.
    fn game(&self) -> Option<&str> {
        let first = self.path.strip_prefix("games/")?.split('/').next()?;
        Some(first.strip_suffix(".rs").unwrap_or(first)).filter(|name| !SHARED_BY_GAMES.contains(name))
    }
}

/// How high a module's layer is.
fn rank(module: &str) -> Option<usize> {
    LAYERS.iter().position(|(name, _)| *name == module)
}

/// The text without comments and without the contents of string literals.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        if rest.starts_with("//") {
            rest = &rest[rest.find('\n').unwrap_or(rest.len())..];
        } else if rest.starts_with("/*") {
            rest = rest.find("*/").map_or("", |end| &rest[end + 2..]);
        } else if rest.starts_with("'\"'") || rest.starts_with("'\\\"'") {
            rest = &rest[rest.find("\"'").map_or(rest.len(), |end| end + 2)..];
        } else if rest.starts_with("r#\"") {
            rest = rest.find("\"#").map_or("", |end| &rest[end + 2..]);
            code.push_str("\"\"");
        } else if first == '"' {
            let mut escaped = false;
            let end = rest[1..].find(|c| {
                let ends = c == '"' && !escaped;
                escaped = c == '\\' && !escaped;
                ends
            });
            rest = end.map_or("", |end| &rest[end + 2..]);
            code.push_str("\"\"");
        } else {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        }
    }
    code
}

/// The names that follow `prefix::` in the code, also the first ones inside braces: `a` and `b` for
/// `crate::{a::x, b}`.
fn names_after<'a>(code: &'a str, prefix: &str) -> Vec<&'a str> {
    let mut names = Vec::new();
    for at in positions(code, prefix) {
        let rest = code[at + prefix.len()..].trim_start();
        if let Some(tree) = rest.strip_prefix('{') {
            let (mut depth, mut start) = (0, true);
            for (index, c) in tree.char_indices() {
                match c {
                    '{' => depth += 1,
                    '}' if depth == 0 => break,
                    '}' => depth -= 1,
                    ',' if depth == 0 => start = true,
                    c if start && is_word(c) => {
                        names.push(word(&tree[index..]));
                        start = false;
                    }
                    _ => {}
                }
            }
        } else {
            names.push(word(rest));
        }
    }
    names.retain(|name| !name.is_empty());
    names
}

/// Where `path` occurs as the beginning of a path, not behind a word, `.` or `::`.
fn positions(code: &str, path: &str) -> Vec<usize> {
    let starts = |at: &usize| !code[..*at].ends_with(|c: char| is_word(c) || c == ':' || c == '.');
    code.match_indices(path).map(|(at, _)| at).filter(starts).collect()
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn word(text: &str) -> &str {
    text.split(|c| !is_word(c)).next().unwrap_or("")
}

/// Whether the code uses the dependency: `name::`, `use name;` or `use name as`.
fn uses(code: &str, dependency: &str) -> bool {
    let name = dependency.replace('-', "_");
    !positions(code, &format!("{name}::")).is_empty()
        || code.split("use ").skip(1).any(|rest| {
            let after = rest.strip_prefix(&name).map(str::trim_start);
            after.is_some_and(|after| after.starts_with(';') || after.starts_with("as "))
        })
}

/// All breaches of the tables in these sources, one line each.
fn breaches(sources: &[Source]) -> Vec<String> {
    let mut found = Vec::new();
    let rows: BTreeMap<&str, &[&str]> = LAYERS.iter().copied().collect();
    for source in sources {
        let module = source.module();
        if module == "lib" || module == "main" {
            continue;
        }
        let Some(allowed) = rows.get(module) else {
            found.push(format!("src/{}: module `{module}` has no row in LAYERS", source.path));
            continue;
        };
        let above_games = rank(module) > rank(FOR_TESTS);
        let (program, tests) = source.parts();
        let in_program = names_after(program, "crate::").into_iter().map(|name| (name, false));
        let in_tests = names_after(tests, "crate::").into_iter().map(|name| (name, above_games));
        for (name, games_too) in in_program.chain(in_tests) {
            let allowed = allowed.contains(&name) || (games_too && name == FOR_TESTS);
            if name != module && rows.contains_key(name) && !allowed {
                found.push(format!("src/{}: `{module}` must not import `{name}`", source.path));
            }
        }
        for prefix in ["super::", "super::super::", "super::super::super::"] {
            for name in names_after(&source.code, prefix) {
                // A submodule may have a top module's name, such as `run/search.rs`.
                let named = |path: &str| path.split('/').skip(1).any(|part| part.trim_end_matches(".rs") == name);
                let own = sources.iter().any(|other| other.module() == module && named(&other.path));
                if rows.contains_key(name) && !own {
                    found.push(format!("src/{}: write `crate::{name}`, not `{prefix}{name}`", source.path));
                }
            }
        }
        if let Some(game) = source.game() {
            let games: BTreeSet<&str> = sources.iter().filter_map(Source::game).collect();
            let flat = source.path.matches('/').count() == 1;
            let up = if flat { ["super::", "super::super::"] } else { ["super::super::", "super::super::super::"] };
            for prefix in [up[0], up[1], "crate::games::"] {
                for name in
                    names_after(&source.code, prefix).into_iter().filter(|name| *name != game && games.contains(name))
                {
                    found.push(format!("src/{}: a game must not import another one (`{name}`)", source.path));
                }
            }
        }
    }
    for (dependency, place) in CRATES {
        let users: Vec<&str> =
            sources.iter().filter(|source| uses(&source.code, dependency)).map(|source| source.path.as_str()).collect();
        let (below, most): (&[&str], usize) = match place {
            Anywhere => continue,
            In(paths) => (paths, usize::MAX),
            OneFile(path) => (&[*path], 1),
            Nowhere => (&[], usize::MAX),
        };
        for user in users.iter().filter(|user| !below.iter().any(|path| user.starts_with(path))) {
            found.push(format!(
                "src/{user}: `{dependency}` belongs in {}",
                if below.is_empty() { "no code".to_owned() } else { below.join(", ") }
            ));
        }
        if users.len() > most {
            found.push(format!("`{dependency}` belongs in one file, but is in {}", users.join(", ")));
        }
    }
    found
}

fn read_sources(folder: &Path, root: &Path, sources: &mut Vec<Source>) {
    let entries = std::fs::read_dir(folder).expect("the folder of sources is there");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("an entry").path()).collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            read_sources(&path, root, sources);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let text = std::fs::read_to_string(&path).expect("sources are text");
            let below = path.strip_prefix(root).expect("it lies below the root");
            sources.push(Source { path: below.to_string_lossy().replace('\\', "/"), code: code_of(&text) });
        }
    }
}

/// The names in the section `[dependencies]` of Cargo.toml.
fn dependencies(manifest: &str) -> Vec<String> {
    let lines = manifest.lines().skip_while(|line| line.trim() != "[dependencies]").skip(1);
    lines
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.trim_start().starts_with('#'))
        .filter_map(|line| line.split_once('=').map(|(name, _)| name.trim().to_owned()))
        .collect()
}

#[test]
fn the_sources_keep_the_layers() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut sources = Vec::new();
    read_sources(&root, &root, &mut sources);
    assert!(sources.len() > LAYERS.len(), "the sources were not found");
    let found = breaches(&sources);
    assert!(found.is_empty(), "{} breach(es) of the layers in tests/layering.rs:\n{}", found.len(), found.join("\n"));
}

#[test]
fn every_dependency_has_a_row_and_every_row_a_dependency() {
    let manifest = Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml");
    let mut listed = dependencies(&std::fs::read_to_string(manifest).expect("the manifest is there"));
    listed.sort();
    let mut rows: Vec<&str> = CRATES.iter().map(|(name, _)| *name).collect();
    rows.sort_unstable();
    assert_eq!(listed, rows);
}

#[test]
fn rows_import_only_rows_above_them() {
    for (index, (module, allowed)) in LAYERS.iter().enumerate() {
        for name in *allowed {
            assert!(
                LAYERS[..index].iter().any(|(lower, _)| lower == name),
                "{module} may import {name}, which is not lower"
            );
        }
    }
}

#[test]
fn breaches_are_found() {
    let check = |path: &str, text: &str| {
        breaches(&[
            Source { path: path.to_owned(), code: code_of(text) },
            Source { path: "games/uttt.rs".to_owned(), code: String::new() },
        ])
    };
    for (path, text) in [
        ("game/mod.rs", "use crate::search::Tree;"),
        ("search/tree.rs", "use crate::{game::Game, util::rng, games::uttt};"),
        ("search/tree.rs", "fn f() { crate::data::x() }"),
        ("util/x.rs", "#[cfg(test)] mod tests { use crate::game; }"),
        ("eval/tests.rs", "use crate::search::x;"),
        ("game/mod.rs", "#[cfg(test)] mod tests { use crate::games::uttt::Uttt; }"),
        ("play/mod.rs", "use crate::games::uttt::Uttt; #[cfg(test)] mod tests {}"),
        ("net/mod.rs", "use super::search::Tree;"),
        ("data/mod.rs", "use tch::Tensor;"),
        ("data/mod.rs", "use tch;"),
        ("play/mod.rs", "let t: tch::Tensor = x;"),
        ("run/config.rs", "use clap::Parser;"),
        ("games/othello.rs", "use super::uttt::Board;"),
        ("games/othello.rs", "use crate::games::uttt::Board;"),
        ("games/zener/rules.rs", "use super::super::uttt::Board;"),
        ("net/a.rs", "torch_sys::x()"),
        ("extra/mod.rs", ""),
    ] {
        assert_eq!(check(path, text).len(), 1, "{path}: {text}");
    }
    for (path, text) in [
        ("search/tree.rs", "// crate::net\n/* tch::Tensor */ use crate::{game::{Game, search}, util};"),
        ("search/tree.rs", "let text = \"crate::net tch::\"; use crate::search::x;"),
        ("net/mod.rs", "use crate::net::openvino::Engine; use openvino::Core; use tch::Tensor;"),
        ("data/mod.rs", "fn f() { stretch::x(); self.tch::<u8>() }"),
        ("games/mod.rs", "mod uttt; use uttt::Uttt; use self::uttt::X;"),
        ("games/zener/rules.rs", "use super::moves::Move; use crate::games::zener::moves; let c = '\"'; // tch::"),
        ("run/x.rs", "let json = r#\"{\"tch::x\": 1}\"#; let c = '\\\"';"),
        ("games/uttt.rs", "mod tests { use super::*; use crate::games::uttt::Board; }"),
        ("play/mod.rs", "#[cfg(test)] mod tests { use crate::games::uttt::Uttt; }"),
        ("play/tests.rs", "use crate::{games::uttt::Uttt, search};"),
        ("main.rs", "sparring::cli::main()"),
    ] {
        assert_eq!(check(path, text), Vec::<String>::new(), "{path}: {text}");
    }
    let twice = |path: &str| Source { path: path.to_owned(), code: "use tensorboard_rs::X;".to_owned() };
    assert_eq!(breaches(&[twice("run/a.rs"), twice("run/b.rs")]).len(), 1);
    assert_eq!(breaches(&[twice("run/a.rs")]), Vec::<String>::new());
}
