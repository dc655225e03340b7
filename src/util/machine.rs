//! The processor that the process runs on, and how much of it the process uses.

use serde::Serialize;

/// A processor.
#[derive(Clone, Debug, Serialize)]
pub struct Cpu {
    /// Its name.
    pub model: String,
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

/// The machine's memory in bytes; `None` where the system does not tell.
pub fn memory() -> Option<u64> {
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
    Cpu { model, threads: cores(), features }
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
