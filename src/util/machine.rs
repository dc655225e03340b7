//! The processor that the process runs on, and how much of it the process uses.

use std::path::Path;

use serde::Serialize;

/// A processor.
#[derive(Clone, Debug, Serialize)]
pub struct Cpu {
    /// Its name.
    pub model: String,
    /// Who makes it, as it says itself (`AuthenticAMD`, `GenuineIntel`); empty where the system does not tell.
    pub vendor: String,
    /// Threads that this process may use.
    pub threads: usize,
    /// Those of its abilities that the libraries make use of, named as Linux does.
    pub features: Vec<&'static str>,
}

/// Abilities that matter to the libraries or to the games' bit boards.
const FEATURES: [&str; 12] = [
    "popcnt",
    "bmi2",
    "fma",
    "avx2",
    "avx_vnni",
    "avx512f",
    "avx512_vnni",
    "avx512_bf16",
    "avx512_fp16",
    "amx_int8",
    "amx_bf16",
    "amx_fp16",
];

/// Cores that this process may use.
pub fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}

/// The memory in bytes that this process may have: the machine's, or what its control group (a container, a batch system, a
/// service) is limited to where that is less. `None` where the system does not tell.
pub fn memory() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let limit = group_limit(&groups, Path::new("/sys/fs/cgroup"));
    [installed(), limit].into_iter().flatten().min()
}

/// The lowest limit on the memory of the control groups in `groups` (the text of `/proc/PID/cgroup`), or of groups around them; the
/// groups of versions 1 and 2 are mounted at `root`.
///
/// Inside of a container the text can name folders that are only outside. What limits the container is at the root then, so
/// folders that are not there are passed over.
fn group_limit(groups: &str, root: &Path) -> Option<u64> {
    let mut limits = Vec::new();
    for line in groups.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let (base, file) = match controllers {
            "" => (root.to_owned(), "memory.max"),
            _ if controllers.split(',').any(|name| name == "memory") => (root.join("memory"), "memory.limit_in_bytes"),
            _ => continue,
        };
        let group = base.join(path.trim_start_matches('/'));
        let folders = group.ancestors().take_while(|folder| folder.starts_with(&base));
        // A group without a limit says `max`, or a number far beyond any memory.
        limits.extend(
            folders.filter_map(|folder| std::fs::read_to_string(folder.join(file)).ok()?.trim().parse::<u64>().ok()),
        );
    }
    limits.into_iter().min()
}

/// The machine's memory in bytes.
fn installed() -> Option<u64> {
    let info = std::fs::read_to_string("/proc/meminfo").ok()?;
    let total = info.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix("kB")?.trim().parse::<u64>().ok().map(|kilobytes| kilobytes << 10)
}

/// Looks at the processor.
pub fn cpu() -> Cpu {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let value = |key: &str| {
        info.lines().find_map(|line| line.split_once(':').filter(|(name, _)| name.trim() == key).map(|(_, v)| v.trim()))
    };
    let model = value("model name").map_or_else(|| std::env::consts::ARCH.to_owned(), str::to_owned);
    let features: Vec<&'static str> = match value("flags") {
        Some(flags) => {
            let flags: Vec<&str> = flags.split_whitespace().collect();
            FEATURES.into_iter().filter(|feature| flags.contains(feature)).collect()
        }
        None => detected(),
    };
    let vendor = value("vendor_id").unwrap_or_default().to_owned();
    Cpu { model, vendor, threads: cores(), features }
}

/// The abilities that the standard library can tell, where the system has no list of them.
#[cfg(target_arch = "x86_64")]
fn detected() -> Vec<&'static str> {
    let found = [
        ("popcnt", is_x86_feature_detected!("popcnt")),
        ("bmi2", is_x86_feature_detected!("bmi2")),
        ("fma", is_x86_feature_detected!("fma")),
        ("avx2", is_x86_feature_detected!("avx2")),
        ("avx512f", is_x86_feature_detected!("avx512f")),
        ("avx512_bf16", is_x86_feature_detected!("avx512bf16")),
    ];
    found.into_iter().filter_map(|(name, there)| there.then_some(name)).collect()
}

#[cfg(not(target_arch = "x86_64"))]
fn detected() -> Vec<&'static str> {
    Vec::new()
}

/// Seconds that all threads of this process have spent on processors so far, in steps of 1/100; `None` where the system
/// does not tell.
pub fn cpu_seconds() -> Option<f64> {
    /// What Linux counts in for programs, on all its platforms.
    const TICKS_PER_SECOND: f64 = 100.0;
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    // The second field is the program's name in brackets, which may hold anything; time in the program and in the
    // system are the 14th and 15th.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11);
    let mut ticks = || fields.next()?.parse::<u64>().ok();
    Some((ticks()? + ticks()?) as f64 / TICKS_PER_SECOND)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_a_processor() {
        let cpu = cpu();
        assert!(!cpu.model.is_empty() && cpu.threads >= 1);
        assert!(cpu.features.iter().all(|feature| FEATURES.contains(feature)));
    }

    #[test]
    fn the_lowest_limit_of_a_group_and_those_around_it_counts() {
        let scratch = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let file = scratch.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(file, text).unwrap();
        };
        let limit = |groups: &str| group_limit(groups, scratch.path());
        assert_eq!(limit("0::/a/b\n4:memory:/x\n"), None, "nothing is mounted");
        write("a/memory.max", "3000000\n");
        write("a/b/memory.max", "max\n");
        assert_eq!(limit("0::/a/b\n"), Some(3_000_000));
        assert_eq!(limit("0::/\n1:name=systemd:/\n"), None);
        // What is only outside of the container is limited by what is at its root.
        write("memory/memory.limit_in_bytes", "2000000\n");
        write("memory/x/memory.limit_in_bytes", "9223372036854771712\n");
        assert_eq!(limit("5:cpu,memory:/outside/deep\n0::/a\n"), Some(2_000_000));
        assert_eq!(limit("5:cpu:/x\n4:memory:/x\n"), Some(2_000_000));
        assert_eq!(limit("nonsense\n7:memory\n"), None);
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn there_is_memory_for_this_process() {
        let have = memory().expect("Linux tells");
        assert!(have >= 1 << 26 && have <= installed().expect("Linux tells"), "{have}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn work_takes_processor_time() {
        let began = cpu_seconds().expect("Linux tells");
        let clock = std::time::Instant::now();
        let mut x = 1u64;
        while cpu_seconds().expect("it told before") < began + 0.05 {
            for _ in 0..100_000 {
                x = crate::util::rng::mix(std::hint::black_box(x));
            }
            assert!(clock.elapsed().as_secs() < 60, "no time was counted");
        }
    }
}
