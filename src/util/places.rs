//! Where the user's files of this program lie, outside any run: the cache folder and OpenVINO.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The cache folder, shared by all checkouts of one user: `$XDG_CACHE_HOME/sparring`, by default
/// `~/.cache/sparring`. As the XDG base directory specification asks, a relative `XDG_CACHE_HOME` is ignored.
/// `None` when neither variable says where. The folder need not exist.
pub fn cache_dir() -> Option<PathBuf> {
    cache_dir_from(|name| std::env::var_os(name))
}

/// The folder with the shared libraries of OpenVINO: `SPARRING_OPENVINO` when it is set (empty means "use
/// none"), else the newest `openvino-*` of the [`cache_dir`] that holds its C library. `None` when there is none.
pub fn openvino_dir() -> Option<PathBuf> {
    match std::env::var_os("SPARRING_OPENVINO") {
        Some(given) if given.is_empty() => None,
        Some(given) => Some(PathBuf::from(given)),
        None => openvino_in(&cache_dir()?),
    }
}

/// The C library in a folder with OpenVINO's libraries: under its plain name, or with a version behind it as
/// the Python wheel has it (`libopenvino_c.so.2641`; of several the highest).
pub fn openvino_c_library(folder: &Path) -> Option<PathBuf> {
    let plain = folder.join(format!("{}openvino_c{}", std::env::consts::DLL_PREFIX, std::env::consts::DLL_SUFFIX));
    if plain.is_file() {
        return Some(plain);
    }
    names(folder)
        .into_iter()
        .filter(|name| name.starts_with("libopenvino_c."))
        .max_by_key(|name| numbers(name))
        .map(|name| folder.join(name))
}

fn cache_dir_from(variable: impl Fn(&str) -> Option<OsString>) -> Option<PathBuf> {
    let set = |name| variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = set("XDG_CACHE_HOME").filter(|path| path.is_absolute()).or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(base.join("sparring"))
}

fn openvino_in(cache: &Path) -> Option<PathBuf> {
    names(cache)
        .into_iter()
        .filter(|name| name.starts_with("openvino-") && openvino_c_library(&cache.join(name)).is_some())
        .max_by_key(|name| numbers(name))
        .map(|name| cache.join(name))
}

/// The file names in a folder that are UTF-8, sorted; none when it cannot be read.
fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    names
}

/// The runs of digits in a name as numbers, so that versions compare by value: 2026.10 comes after 2026.4.
fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_folder_follows_the_xdg_rules() {
        let with = |xdg: Option<&str>, home: Option<&str>| {
            cache_dir_from(|name| match name {
                "XDG_CACHE_HOME" => xdg.map(OsString::from),
                "HOME" => home.map(OsString::from),
                _ => None,
            })
        };
        assert_eq!(with(Some("/x"), Some("/h")), Some(PathBuf::from("/x/sparring")));
        for unusable in [None, Some(""), Some("relative/path")] {
            assert_eq!(with(unusable, Some("/h")), Some(PathBuf::from("/h/.cache/sparring")));
        }
        assert_eq!(with(None, None), None);
    }

    #[test]
    fn the_newest_openvino_that_is_really_there_is_found() {
        let cache = tempfile::tempdir().expect("a temporary folder");
        assert_eq!(openvino_in(cache.path()), None);
        for name in ["openvino-2026.4.1", "openvino-2026.10.0", "openvino-2027.1.0"] {
            std::fs::create_dir(cache.path().join(name)).expect("a new folder");
        }
        assert_eq!(openvino_in(cache.path()), None, "empty folders do not count");
        for (name, library) in [("2026.4.1", "2641"), ("2026.10.0", "26100")] {
            let folder = cache.path().join(format!("openvino-{name}"));
            std::fs::write(folder.join(format!("libopenvino_c.so.{library}")), "").expect("a new file");
        }
        let newest = cache.path().join("openvino-2026.10.0");
        assert_eq!(openvino_in(cache.path()), Some(newest.clone()));
        assert_eq!(openvino_c_library(&newest), Some(newest.join("libopenvino_c.so.26100")));
    }
}
