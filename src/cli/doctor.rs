//! `sparring doctor`: what the set-up found on this machine.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Outcome, print};
use crate::net::{fast_bfloat16, openvino_version};
use crate::util::machine::{self, Cpu};
use crate::util::places;

/// Say what the set-up found: libtorch, OpenVINO, devices, CPU features, threads, folders
#[derive(clap::Args)]
#[command(after_help = "Example:\n  sparring doctor --json")]
pub struct Doctor {
    /// One JSON document instead of text
    #[arg(long)]
    json: bool,
}

impl Doctor {
    pub(super) fn run(self) -> Outcome {
        let report = report();
        let text = if self.json { serde_json::to_string_pretty(&report)? + "\n" } else { report.to_string() };
        print(&text)
    }
}

/// What this build and this machine have to offer.
#[derive(Clone, Debug, Serialize)]
pub struct DoctorReport {
    /// Version of sparring.
    pub sparring: &'static str,
    /// The library that trains, and infers on GPUs.
    pub libtorch: Libtorch,
    /// The library that infers on CPUs.
    pub openvino: OpenVino,
    /// Devices that a config may name: `cpu`, `cuda:0`, ..., `mps`.
    pub devices: Vec<String>,
    /// Why a GPU that seems to be there is not among the devices.
    pub device_problem: Option<String>,
    /// The processor.
    pub cpu: Processor,
    /// Where downloaded libraries lie, shared by all checkouts of this user.
    pub cache: Option<PathBuf>,
}

/// The libtorch in use.
#[derive(Clone, Debug, Serialize)]
pub struct Libtorch {
    /// Version that this build was made with.
    pub version: &'static str,
    /// Folder of the library that is loaded in this process.
    pub folder: PathBuf,
    /// Whether it was built with CUDA and that half is linked in.
    pub cuda: bool,
    /// Threads that one operation may use as things stand.
    pub threads: i32,
}

/// The OpenVINO in use, or why there is none.
#[derive(Clone, Debug, Serialize)]
pub struct OpenVino {
    /// Folder of its libraries.
    pub folder: Option<PathBuf>,
    /// Its version, when it could be loaded.
    pub version: Option<String>,
    /// Why it cannot be used, and what to do.
    pub problem: Option<String>,
}

/// The processor and what of it counts here.
#[derive(Clone, Debug, Serialize)]
pub struct Processor {
    /// What it is.
    #[serde(flatten)]
    pub cpu: Cpu,
    /// Whether evaluations take bfloat16, which is faster on this CPU.
    pub bfloat16: bool,
}

/// Looks at this machine. Loads OpenVINO into the process, if there is one.
pub fn report() -> DoctorReport {
    let cuda_devices = tch::Cuda::device_count();
    let cuda = tch::utils::has_cuda();
    let mut devices = vec!["cpu".to_owned()];
    devices.extend((0..cuda_devices).map(|index| format!("cuda:{index}")));
    if tch::utils::has_mps() {
        devices.push("mps".to_owned());
    }
    DoctorReport {
        sparring: env!("CARGO_PKG_VERSION"),
        libtorch: Libtorch {
            version: env!("SPARRING_LIBTORCH_VERSION"),
            folder: loaded_libtorch().unwrap_or_else(|| PathBuf::from(env!("SPARRING_LIBTORCH_LIB"))),
            cuda,
            threads: tch::get_num_threads(),
        },
        openvino: openvino(places::openvino_dir()),
        devices,
        device_problem: device_problem(cuda_devices, cuda, Path::new("/proc/driver/nvidia/version").exists()),
        cpu: Processor { bfloat16: fast_bfloat16(), cpu: machine::cpu() },
        cache: places::cache_dir(),
    }
}

impl fmt::Display for DoctorReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let line = |f: &mut fmt::Formatter<'_>, name: &str, text: &str| writeln!(f, "{name:<10} {text}");
        line(f, "sparring", self.sparring)?;
        let half = if self.libtorch.cuda { "with CUDA" } else { "without CUDA" };
        line(f, "libtorch", &format!("{} {half}, in {}", self.libtorch.version, self.libtorch.folder.display()))?;
        match (&self.openvino.folder, &self.openvino.version, &self.openvino.problem) {
            (Some(folder), Some(version), None) => {
                line(f, "openvino", &format!("{version}, in {}", folder.display()))?;
            }
            (_, _, problem) => line(f, "openvino", &format!("none: {}", problem.as_deref().unwrap_or("not found")))?,
        }
        line(f, "devices", &self.devices.join(", "))?;
        if let Some(problem) = &self.device_problem {
            line(f, "", problem)?;
        }
        line(f, "cpu", &self.cpu.cpu.model)?;
        line(f, "features", &self.cpu.cpu.features.join(" "))?;
        line(
            f,
            "bfloat16",
            if self.cpu.bfloat16 { "used to evaluate networks" } else { "not used: float32 is faster" },
        )?;
        line(f, "threads", &format!("{} available, libtorch uses {}", self.cpu.cpu.threads, self.libtorch.threads))?;
        let cache = self
            .cache
            .as_ref()
            .map_or("none: neither XDG_CACHE_HOME nor HOME is set".to_owned(), |cache| cache.display().to_string());
        line(f, "cache", &cache)
    }
}

/// The folder from which this process has libtorch, as Linux tells it.
fn loaded_libtorch() -> Option<PathBuf> {
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    let line = maps.lines().find(|line| line.contains("/libtorch_cpu."))?;
    Path::new(&line[line.find('/')?..]).parent().map(Path::to_owned)
}

fn openvino(folder: Option<PathBuf>) -> OpenVino {
    let without = |folder, problem: String| OpenVino { folder, version: None, problem: Some(problem) };
    let Some(folder) = folder else {
        let why = if std::env::var_os("SPARRING_OPENVINO").is_some() {
            "SPARRING_OPENVINO is set to nothing, which switches it off"
        } else if places::cache_dir().is_none() {
            "neither HOME nor XDG_CACHE_HOME is set, so it is not known where it is installed"
        } else {
            "`scripts/setup` installs it"
        };
        return without(None, format!("{why}; inference on the CPU is done by libtorch, more slowly"));
    };
    match openvino_version(&folder) {
        Ok(version) => OpenVino { folder: Some(folder), version: Some(version), problem: None },
        Err(error) => {
            let advice = "point SPARRING_OPENVINO elsewhere, or remove the folder and run `scripts/setup`";
            let problem = format!("{} cannot be used ({error}): {advice}", folder.display());
            without(Some(folder), problem)
        }
    }
}

fn device_problem(cuda_devices: i64, cuda_build: bool, driver: bool) -> Option<String> {
    match (cuda_devices > 0, cuda_build, driver) {
        (true, _, _) | (false, false, false) => None,
        (false, false, true) => Some(
            "an NVIDIA driver is there, but this libtorch has no CUDA: run `SPARRING_LIBTORCH=cuda scripts/sparring doctor`"
                .to_owned(),
        ),
        (false, true, true) => Some(
            "an NVIDIA driver is there, but CUDA 13 finds no device: it needs driver 580 or newer and a visible GPU (see \
             `nvidia-smi` and CUDA_VISIBLE_DEVICES)"
                .to_owned(),
        ),
        (false, true, false) => Some("this libtorch has CUDA, but there is no NVIDIA driver".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_report_names_what_is_loaded() {
        let report = report();
        assert_eq!(report.libtorch.version, "2.13.0");
        assert!(report.libtorch.folder.is_dir(), "{:?}", report.libtorch.folder);
        assert_eq!(report.devices[0], "cpu");
        assert!(report.cpu.cpu.threads >= 1);
        let text = report.to_string();
        for name in ["libtorch", "openvino", "devices", "cpu", "features", "bfloat16", "threads", "cache"] {
            assert!(text.lines().any(|line| line.starts_with(name)), "{name} is missing:\n{text}");
        }
        let json = serde_json::to_value(&report).expect("it is plain data");
        assert_eq!(json["libtorch"]["version"], "2.13.0");
        assert!(json["cpu"]["model"].is_string() && json["cpu"]["bfloat16"].is_boolean(), "{json}");
        // Exactly one of the two: a version, or a reason for having none.
        assert_ne!(report.openvino.version.is_some(), report.openvino.problem.is_some());
    }

    #[test]
    fn an_unusable_openvino_is_explained() {
        let empty = tempfile::tempdir().expect("a temporary folder");
        let found = openvino(Some(empty.path().to_owned()));
        assert!(found.problem.is_some_and(|text| text.contains("holds no libopenvino_c")));
        assert!(openvino(None).problem.is_some_and(|text| text.contains("libtorch, more slowly")));
    }

    #[test]
    fn a_gpu_that_cannot_be_used_is_explained() {
        assert_eq!(device_problem(0, false, false), None);
        assert_eq!(device_problem(2, true, true), None);
        for (cuda, driver) in [(false, true), (true, true), (true, false)] {
            assert!(device_problem(0, cuda, driver).is_some());
        }
    }
}
