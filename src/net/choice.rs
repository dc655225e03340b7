//! Which engine, precision and device evaluate positions: what the config says, and what becomes of it here.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The section of a config that says how positions are evaluated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct EngineChoice {
    /// The library that evaluates the network in self-play and matches.
    pub engine: Engine,
    /// The number format of the evaluation; weights are always stored in float32.
    pub precision: Precision,
    /// The device that evaluates: `auto`, `cpu`, `cuda:N` or `mps`.
    pub device: DeviceName,
}

/// A library that evaluates networks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Engine {
    /// OpenVINO on CPUs where it is installed, else libtorch.
    #[default]
    Auto,
    /// OpenVINO: the faster one on CPUs.
    Openvino,
    /// libtorch: on every device.
    Libtorch,
}

/// A number format of evaluation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Precision {
    /// The fastest that costs no strength: bfloat16 on CPUs that multiply it faster, float16 on CUDA devices, else float32.
    #[default]
    Auto,
    /// 32-bit floats.
    F32,
    /// bfloat16: 8 exponent and 7 fraction bits.
    Bf16,
    /// float16: 5 exponent and 10 fraction bits.
    F16,
}

/// A device, by name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceName {
    /// The first CUDA device where there is one, else MPS where there is one, else the CPU.
    #[default]
    Auto,
    /// The CPU.
    Cpu,
    /// The CUDA device of this number.
    Cuda(usize),
    /// The GPU of an Apple machine.
    Mps,
}

/// An engine, precision or device cannot be had here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}: {remedy}")]
pub struct ChoiceError {
    /// What cannot be had, and why.
    pub what: String,
    /// What to do instead.
    pub remedy: String,
}

/// What there is to choose from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Available {
    /// CUDA devices.
    pub cuda: usize,
    /// Whether there is an MPS device.
    pub mps: bool,
    /// Why OpenVINO cannot be used; `None` when it can.
    pub openvino: Result<(), String>,
    /// Whether the CPU evaluates faster in bfloat16 than in float32.
    pub bfloat16: bool,
}

/// A choice without `auto`, and the reasons.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resolved {
    /// [`Engine::Openvino`] or [`Engine::Libtorch`].
    pub engine: Engine,
    /// Not [`Precision::Auto`].
    pub precision: Precision,
    /// Not [`DeviceName::Auto`].
    pub device: DeviceName,
    /// One reason for each decision worth mentioning.
    pub reasons: Vec<String>,
}

impl EngineChoice {
    /// Decides what is left to `auto`; a pure function of its arguments.
    ///
    /// # Errors
    /// When something asked for by name cannot be had, or the parts do not fit together.
    pub fn resolve(&self, available: &Available) -> Result<Resolved, ChoiceError> {
        let mut reasons = Vec::new();
        let device = self.resolve_device(available, &mut reasons)?;
        let engine = self.resolve_engine(available, device, &mut reasons)?;
        let precision = self.resolve_precision(available, device, engine, &mut reasons)?;
        Ok(Resolved { engine, precision, device, reasons })
    }

    fn resolve_device(&self, available: &Available, reasons: &mut Vec<String>) -> Result<DeviceName, ChoiceError> {
        match self.device {
            DeviceName::Auto if self.engine == Engine::Openvino => Ok(DeviceName::Cpu),
            DeviceName::Auto if available.cuda > 0 => Ok(DeviceName::Cuda(0)),
            DeviceName::Auto if available.mps => Ok(DeviceName::Mps),
            DeviceName::Auto => {
                reasons.push("there is no GPU that libtorch can use".into());
                Ok(DeviceName::Cpu)
            }
            DeviceName::Cuda(index) if index >= available.cuda => {
                let there = match available.cuda {
                    0 => "libtorch sees no CUDA device".to_owned(),
                    1 => "there is only cuda:0".to_owned(),
                    count => format!("there are cuda:0 to cuda:{}", count - 1),
                };
                error(
                    format!("device cuda:{index} is not there, {there}"),
                    "choose another `device`, or `sparring doctor` to see why",
                )
            }
            DeviceName::Mps if !available.mps => error("device mps is not there", "choose `device` cpu or auto"),
            device => Ok(device),
        }
    }

    fn resolve_engine(
        &self,
        available: &Available,
        device: DeviceName,
        reasons: &mut Vec<String>,
    ) -> Result<Engine, ChoiceError> {
        let missing = available.openvino.as_ref().err();
        match (self.engine, device, missing) {
            (Engine::Openvino, DeviceName::Cpu, Some(why)) => error(
                format!("engine openvino cannot be used, {why}"),
                "run `scripts/setup`, or choose `engine` libtorch or auto",
            ),
            (Engine::Openvino, DeviceName::Cpu, None) => Ok(Engine::Openvino),
            (Engine::Openvino, _, _) => error(
                format!("engine openvino evaluates on the CPU only, not on {device}"),
                "choose `device` cpu, or `engine` libtorch or auto",
            ),
            (Engine::Auto, DeviceName::Cpu, None) => {
                reasons.push("OpenVINO is the faster engine on CPUs".into());
                Ok(Engine::Openvino)
            }
            (Engine::Auto, DeviceName::Cpu, Some(why)) => {
                reasons.push(format!("evaluation is slower than it could be without OpenVINO, {why}"));
                Ok(Engine::Libtorch)
            }
            _ => Ok(Engine::Libtorch),
        }
    }

    fn resolve_precision(
        &self,
        available: &Available,
        device: DeviceName,
        engine: Engine,
        reasons: &mut Vec<String>,
    ) -> Result<Precision, ChoiceError> {
        match (self.precision, device) {
            (Precision::Auto, DeviceName::Cpu) if available.bfloat16 => {
                reasons.push("bfloat16 is faster than float32 on this CPU".into());
                Ok(Precision::Bf16)
            }
            (Precision::Auto, DeviceName::Cpu) => {
                reasons.push("bfloat16 is no faster on this CPU".into());
                Ok(Precision::F32)
            }
            (Precision::Auto, DeviceName::Cuda(_)) => Ok(Precision::F16),
            (Precision::Auto, _) => Ok(Precision::F32),
            (Precision::Bf16, DeviceName::Cpu) if !available.bfloat16 => {
                reasons.push("bfloat16 was asked for; float32 is faster on this CPU".into());
                Ok(Precision::Bf16)
            }
            (Precision::F16, DeviceName::Cpu) if engine == Engine::Libtorch => error(
                "libtorch evaluates in float16 on GPUs only",
                "choose `precision` auto, f32 or bf16, or `engine` openvino",
            ),
            (Precision::Bf16, DeviceName::Mps) => {
                error("device mps does not evaluate in bfloat16", "choose `precision` auto, f32 or f16")
            }
            (precision, _) => Ok(precision),
        }
    }
}

fn error<T>(what: impl Into<String>, remedy: &str) -> Result<T, ChoiceError> {
    Err(ChoiceError { what: what.into(), remedy: remedy.into() })
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Engine::Auto => "auto",
            Engine::Openvino => "openvino",
            Engine::Libtorch => "libtorch",
        })
    }
}

impl fmt::Display for Precision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Precision::Auto => "auto",
            Precision::F32 => "f32",
            Precision::Bf16 => "bf16",
            Precision::F16 => "f16",
        })
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceName::Auto => f.write_str("auto"),
            DeviceName::Cpu => f.write_str("cpu"),
            DeviceName::Cuda(index) => write!(f, "cuda:{index}"),
            DeviceName::Mps => f.write_str("mps"),
        }
    }
}

impl FromStr for DeviceName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(DeviceName::Auto),
            "cpu" => Ok(DeviceName::Cpu),
            "cuda" => Ok(DeviceName::Cuda(0)),
            "mps" => Ok(DeviceName::Mps),
            _ => text
                .strip_prefix("cuda:")
                .filter(|digits| digits.len() <= 3 && digits.bytes().all(|byte| byte.is_ascii_digit()))
                .and_then(|digits| digits.parse().ok())
                .map(DeviceName::Cuda)
                .ok_or_else(|| format!("{text:?} is no device; allowed are auto, cpu, cuda:N and mps")),
        }
    }
}

impl Serialize for DeviceName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for DeviceName {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for DeviceName {
    fn schema_name() -> Cow<'static, str> {
        "DeviceName".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "type": "string",
            "description": "A device: auto (the first GPU, else the CPU), cpu, cuda:N or mps.",
            "pattern": "^(auto|cpu|cuda(:[0-9]{1,3})?|mps)$",
        })
    }
}

impl fmt::Display for Resolved {
    /// `openvino f32 on cpu (reason; reason)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} on {}", self.engine, self.precision, self.device)?;
        if !self.reasons.is_empty() {
            write!(f, " ({})", self.reasons.join("; "))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plain() -> Available {
        Available { cuda: 0, mps: false, openvino: Ok(()), bfloat16: false }
    }

    fn choose(json: &str, available: &Available) -> Result<String, ChoiceError> {
        let choice: EngineChoice = serde_json::from_str(json).expect("a choice");
        choice.resolve(available).map(|r| format!("{} {} {}", r.engine, r.precision, r.device))
    }

    #[test]
    fn auto_takes_the_best_there_is() {
        let none = Available { openvino: Err("it is not installed".into()), ..plain() };
        let cases = [
            (plain(), "openvino f32 cpu"),
            (Available { bfloat16: true, ..plain() }, "openvino bf16 cpu"),
            (none.clone(), "libtorch f32 cpu"),
            (Available { bfloat16: true, ..none.clone() }, "libtorch bf16 cpu"),
            (Available { cuda: 2, ..plain() }, "libtorch f16 cuda:0"),
            (Available { mps: true, ..plain() }, "libtorch f32 mps"),
        ];
        for (available, expected) in cases {
            assert_eq!(choose("{}", &available).unwrap(), expected);
        }
        let cuda = Available { cuda: 1, ..plain() };
        assert_eq!(choose(r#"{"engine": "openvino"}"#, &cuda).unwrap(), "openvino f32 cpu");
        assert_eq!(choose(r#"{"device": "cpu"}"#, &cuda).unwrap(), "openvino f32 cpu");
        let said = EngineChoice::default().resolve(&none).unwrap().to_string();
        assert!(said.contains("it is not installed") && said.contains("no faster"), "{said}");
    }

    #[test]
    fn what_cannot_be_had_is_an_error_with_a_remedy() {
        let none = Available { openvino: Err("it is not installed".into()), ..plain() };
        let cuda = Available { cuda: 1, ..plain() };
        let cases = [
            (r#"{"engine": "openvino"}"#, &none, "it is not installed"),
            (r#"{"engine": "openvino", "device": "cuda:0"}"#, &cuda, "on the CPU only"),
            (r#"{"device": "cuda:1"}"#, &cuda, "there is only cuda:0"),
            (r#"{"device": "cuda:0"}"#, &plain(), "no CUDA device"),
            (r#"{"device": "mps"}"#, &plain(), "mps is not there"),
            (r#"{"engine": "libtorch", "precision": "f16"}"#, &plain(), "GPUs only"),
        ];
        for (json, available, text) in cases {
            let message = choose(json, available).unwrap_err().to_string();
            assert!(message.contains(text) && message.contains("choose"), "{json}: {message}");
        }
    }

    #[test]
    fn devices_have_names() {
        for name in ["auto", "cpu", "cuda:0", "cuda:12", "mps"] {
            assert_eq!(name.parse::<DeviceName>().unwrap().to_string(), name);
        }
        for name in ["gpu", "cuda:", "cuda:-1", "cuda:x", "cuda:99999999999999999999", ""] {
            assert!(name.parse::<DeviceName>().unwrap_err().contains("allowed are"), "{name}");
        }
        assert!(serde_json::from_str::<EngineChoice>(r#"{"device": "tpu"}"#).is_err());
        assert!(serde_json::from_str::<EngineChoice>(r#"{"engin": "auto"}"#).is_err());
    }
}
