//! The network as a TorchScript archive: traced from the served graph, and read back.
//!
//! An archive is a zip of stored entries below one folder: `code/` with the traced function, `constants/N` with the numbers of the
//! tensors, and `extra/` for whatever a program wants to add, which `torch.jit.load` hands out as `_extra_files`. Ours adds
//! [`DESCRIPTION`]: the metadata, and which entry holds which tensor.

use std::collections::BTreeMap;
use std::fmt::Display;
use std::fs::DirBuilder;
use std::io::{Cursor, ErrorKind, Read as _, Write as _};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};
use tch::{CModule, IValue, Kind, TchError, Tensor};
use zip::write::FileOptions;
use zip::{CompressionMethod, ZipArchive, ZipWriter};

use crate::net::checkpoint::KEY;
use crate::net::graph::{Affine, Graph, Op};
use crate::net::spec::NetSpec;
use crate::net::weights::{Digest, Weights, floats};
use crate::util::publish::free_space;
use crate::util::text::one_line;

/// The folder of the archive.
const FOLDER: &str = "network/";
/// The entry that is ours, below the folder's `extra/`.
pub const DESCRIPTION: &str = "sparring.json";

/// What the entry [`DESCRIPTION`] holds.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    metadata: BTreeMap<String, String>,
    /// For each tensor of the served graph the entry that holds its numbers.
    tensors: BTreeMap<String, String>,
    /// A digest over all other entries.
    digest: String,
}

/// The bytes of an archive with this metadata. libtorch writes files alone: one in the system's folder for temporary files is
/// written and removed on the way.
///
/// # Errors
/// When the weights are not those of the network, libtorch fails or the file cannot be written.
pub fn to_torchscript(spec: &NetSpec, weights: &Weights, metadata: &[(String, String)]) -> Result<Vec<u8>, String> {
    let graph = &Graph::new(spec, weights).map_err(|error| error.to_string())?;
    let folder = std::env::temp_dir();
    // On a full disk libtorch ends the whole process.
    let (need, free) =
        (8 * spec.parameter_count() as u64 + (1 << 20), free_space(&folder).map_err(|error| error.to_string())?);
    if free < need {
        return Err(format!(
            "{} has {free} bytes left and {need} are needed: free some, or set TMPDIR",
            folder.display()
        ));
    }
    let private = private_folder(&folder)
        .map_err(|error| format!("cannot write to {}: {error}; set TMPDIR", folder.display()))?;
    let scratch = private.join("traced.pt");
    let traced = trace(spec, graph).and_then(|module| module.save(&scratch));
    let bytes = traced.map_err(failed).and_then(|()| std::fs::read(&scratch).map_err(|error| error.to_string()));
    let _ = std::fs::remove_dir_all(&private);
    // libtorch packs the code, and there is no file without code.
    let mut entries = entries(archive(&bytes?)?, false, u64::MAX)?;
    complete(&mut entries)?;
    let mut tensors = BTreeMap::new();
    for (name, numbers) in graph.layers().flat_map(|(name, affine)| parts(name, affine)) {
        let bytes: Vec<u8> = numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
        let found = entries.iter().find(|(entry, held)| entry.starts_with("constants/") && **held == bytes);
        let (entry, _) = found.ok_or_else(|| format!("libtorch did not store the tensor `{name}` as it is"))?;
        tensors.insert(name, entry.clone());
    }
    let metadata = metadata.iter().cloned().collect();
    let description = Description { metadata, tensors, digest: digest(&entries) };
    let text = serde_json::to_string(&description).expect("plain data has a JSON form");
    entries.insert(format!("extra/{DESCRIPTION}"), text.into_bytes());

    let mut out = ZipWriter::new(Cursor::new(Vec::new()));
    // PyTorch maps tensors into memory, which wants them at multiples of 64 bytes.
    let options = FileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, bytes) in &entries {
        let write = out.start_file_aligned(format!("{FOLDER}{name}"), options, 64).map_err(|error| error.to_string());
        write.and_then(|_| out.write_all(bytes).map_err(|error| error.to_string()))?;
    }
    Ok(out.finish().map_err(|error| error.to_string())?.into_inner())
}

/// A new folder in `folder` that nobody else has made, and nobody else may write to.
fn private_folder(folder: &Path) -> std::io::Result<PathBuf> {
    static SERIAL: AtomicU64 = AtomicU64::new(0);
    loop {
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let private = folder.join(format!("sparring-traced-{}-{serial}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&private) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
            made => return made.map(|()| private),
        }
    }
}

/// The served graph as a traced module, for any size of batch.
fn trace(spec: &NetSpec, graph: &Graph) -> Result<CModule, TchError> {
    let _guard = tch::no_grad_guard();
    let input = spec.input;
    // With a batch of one, sizes could be taken for constants.
    let shape = [2, input.channels, input.height, input.width].map(|size| size as i64);
    let planes = Tensor::f_zeros(shape, (Kind::Float, tch::Device::Cpu))?;
    let layers: Vec<Option<(Tensor, Tensor)>> = graph
        .nodes
        .iter()
        .map(|node| node.layer().map(|(_, affine)| tensors(affine)).transpose())
        .collect::<Result<_, _>>()?;
    let mut failure = None;
    let mut run = |inputs: &[Tensor]| {
        forward(graph, &layers, &inputs[0]).unwrap_or_else(|error| {
            failure = Some(error);
            vec![]
        })
    };
    let module = CModule::create_by_tracing("PolicyValueNetwork", "forward", &[planes], &mut run);
    if let Some(error) = failure {
        return Err(error);
    }
    module
}

fn forward(graph: &Graph, layers: &[Option<(Tensor, Tensor)>], planes: &Tensor) -> Result<Vec<Tensor>, TchError> {
    let mut values = vec![planes.shallow_clone()];
    for (node, layer) in graph.nodes.iter().zip(layers) {
        let x = &values[node.inputs[0]];
        let value = match (&node.op, layer) {
            (Op::Conv(affine), Some((weight, bias))) => {
                let padding = affine.shape[2] as i64 / 2;
                x.f_conv2d(weight, Some(bias), [1, 1], [padding, padding], [1, 1], 1)?
            }
            (_, Some((weight, bias))) => x.f_linear(weight, Some(bias))?,
            (Op::Relu, _) => x.f_relu()?,
            (Op::Add, _) => x.f_add(&values[node.inputs[1]])?,
            (Op::Flatten, _) => x.f_flatten(1, -1)?,
            (Op::Pool, _) => {
                let mean = x.f_mean_dim([2i64, 3].as_slice(), true, None)?;
                Tensor::f_cat(&[mean, x.f_amax([2i64, 3], true)?], 1)?
            }
            (_, None) => {
                let parts: Vec<&Tensor> = node.inputs.iter().map(|&input| &values[input]).collect();
                Tensor::f_cat(&parts, 1)?
            }
        };
        values.push(value);
    }
    // Side by side, as a trace has one output; `complete` parts them again.
    Ok(vec![Tensor::f_cat(&[&values[graph.policy], &values[graph.value]], 1)?])
}

/// Completes what the interface for tracing leaves out: it knows functions with one output alone, so `return torch.cat([policy,
/// value], 1)` becomes `return (policy, value)`; and its modules do not say that they are in evaluation mode.
fn complete(entries: &mut BTreeMap<String, Vec<u8>>) -> Result<(), String> {
    // They say where in the program each line was made: of no use here, and wrong once the lines change.
    entries.retain(|name, _| !name.ends_with(".debug_pkl"));
    let function = |entry: &(&String, &mut Vec<u8>)| {
        entry.0.starts_with("code/") && entry.1.windows(12).any(|w| w == b"def forward(")
    };
    let (_, code) = entries.iter_mut().find(function).ok_or("libtorch did not store a function")?;
    let text = std::str::from_utf8(code).map_err(|error| error.to_string())?;
    const ATTRIBUTES: &str = "  __buffers__ = []\n";
    let parted = parted(text).filter(|text| text.contains(ATTRIBUTES));
    let text = parted.ok_or("libtorch stored the function in an unknown form")?;
    *code = text.replacen(ATTRIBUTES, &format!("{ATTRIBUTES}  training : bool\n"), 1).into_bytes();
    // The object's attributes, as pickle writes them: a dictionary, filled with the pairs between `(` and `u`.
    const EMPTY: &[u8] = b"}(ub";
    let object = entries.get_mut("data.pkl").ok_or("libtorch did not store the module")?;
    let at =
        object.windows(EMPTY.len()).position(|window| window == EMPTY).ok_or("libtorch stored unknown attributes")?;
    // A text of eight bytes, and `false`.
    object.splice(at + 2..at + 2, *b"X\x08\0\0\0training\x89");
    Ok(())
}

fn parted(text: &str) -> Option<String> {
    let (body, result) = text.trim_end().rsplit_once("\n    return ")?;
    // The result may have a name, given to it in the line before.
    let (body, sum) = match result.strip_prefix("torch.cat([") {
        Some(sum) => (body, sum),
        None => {
            let (body, line) = body.rsplit_once('\n')?;
            (body, line.trim_start().strip_prefix(result)?.strip_prefix(" = torch.cat([")?)
        }
    };
    let parts = sum.strip_suffix("], 1)")?;
    let body = body.replacen(") -> Tensor:", ") -> Tuple[Tensor, Tensor]:", 1);
    body.contains("-> Tuple[").then(|| format!("{body}\n    return ({parts})\n"))
}

fn tensors(affine: &Affine) -> Result<(Tensor, Tensor), TchError> {
    let shape: Vec<i64> = affine.shape.iter().map(|&size| size as i64).collect();
    Ok((Tensor::f_from_slice(&affine.weight)?.f_view(shape.as_slice())?, Tensor::f_from_slice(&affine.bias)?))
}

/// Name and numbers of the two tensors of a layer.
fn parts<'a>(name: &str, affine: &'a Affine) -> [(String, &'a Vec<f32>); 2] {
    [(format!("{name}.weight"), &affine.weight), (format!("{name}.bias"), &affine.bias)]
}

/// A digest of names and contents.
fn digest(entries: &BTreeMap<String, Vec<u8>>) -> String {
    let mut digest = Digest::default();
    for (name, bytes) in entries {
        digest.bytes(name.as_bytes());
        digest.bytes(bytes);
    }
    digest.to_string()
}

type Archive<'a> = ZipArchive<Cursor<&'a [u8]>>;

fn broken(error: impl Display) -> String {
    format!("it is cut short or no TorchScript archive ({error})")
}

fn archive(bytes: &[u8]) -> Result<Archive<'_>, String> {
    ZipArchive::new(Cursor::new(bytes)).map_err(broken)
}

/// The entries of an archive without their common folder, of `most` bytes in all. With `stored`, packed ones are refused: many
/// could share a long stream that unpacks to nothing.
fn entries(mut archive: Archive<'_>, stored: bool, most: u64) -> Result<BTreeMap<String, Vec<u8>>, String> {
    let mut entries = BTreeMap::new();
    let mut left = most;
    for index in 0..archive.len() {
        let entry = archive.by_index(index).map_err(broken)?;
        let full = entry.name().to_owned();
        if stored && entry.compression() != CompressionMethod::Stored {
            return Err(broken(format!("`{}` is packed", one_line(&full))));
        }
        let Some((_, name)) = full.split_once('/') else {
            return Err(broken(format!("`{}` lies outside of its folder", one_line(&full))));
        };
        let mut held = Vec::new();
        // What is read counts, whatever the head of the entry says; one byte more shows that there is too much.
        entry.take(left.saturating_add(1)).read_to_end(&mut held).map_err(broken)?;
        left = left.checked_sub(held.len() as u64).ok_or_else(|| broken(format!("it holds more than {most} bytes")))?;
        if entries.insert(name.to_owned(), held).is_some() {
            return Err(broken(format!("`{}` is there twice", one_line(name))));
        }
    }
    Ok(entries)
}

/// An archive, before its tensors are looked at.
pub(crate) struct ScriptFile {
    entries: BTreeMap<String, Vec<u8>>,
    description: Option<Description>,
}

/// The entries of an archive and what ours says about them. Its code is neither run nor looked at, besides that it is the one that
/// was written.
///
/// # Errors
/// When it is none, cut short or altered.
pub(crate) fn parse(bytes: &[u8]) -> Result<ScriptFile, String> {
    // Archives of other programs are not looked into.
    let archive = archive(bytes)?;
    let has = |end: &str| archive.file_names().any(|name| name.split_once('/').is_some_and(|(_, name)| name == end));
    if !has(&format!("extra/{DESCRIPTION}")) && (has("data.pkl") || has("constants.pkl")) {
        return Ok(ScriptFile { description: None, entries: BTreeMap::new() });
    }
    // Ours are stored as they are, so the entries are no larger than the archive.
    let mut entries = entries(archive, true, bytes.len() as u64)?;
    let description = entries.remove(&format!("extra/{DESCRIPTION}")).map(|text| {
        let description: Description =
            serde_json::from_slice(&text).map_err(|error| format!("its description cannot be read ({error})"))?;
        if description.digest != digest(&entries) {
            return Err("it was altered (the digest differs)".to_owned());
        }
        Ok(description)
    });
    Ok(ScriptFile { description: description.transpose()?, entries })
}

impl ScriptFile {
    /// The entry of its metadata that is ours, where it is a file of ours.
    pub fn metadata(&self) -> Option<&str> {
        self.description.as_ref()?.metadata.get(KEY).map(String::as_str)
    }

    /// The weights, normalisations folded away, if the file holds the network `spec`.
    ///
    /// # Errors
    /// Says what differs.
    pub fn weights(&self, spec: &NetSpec) -> Result<Weights, String> {
        let description = self.description.as_ref().ok_or("it has no description")?;
        spec.validate().map_err(|error| error.to_string())?;
        let (asked, held) = (spec.parameter_count(), self.entries.values().map(Vec::len).sum::<usize>());
        // Equal tensors are stored once, but hardly any are equal.
        if asked / 4 > held {
            return Err(format!("it describes a network of {asked} numbers and holds {held} bytes"));
        }
        let mut served = Graph::new(spec, &Weights::identity(spec)).map_err(|error| error.to_string())?;
        let fill = |name: String, data: &mut Vec<f32>| {
            let entry = description.tensors.get(&name).and_then(|entry| self.entries.get(entry));
            let bytes = entry.filter(|bytes| bytes.len() == 4 * data.len());
            let bytes = bytes.ok_or_else(|| format!("`{name}` is missing or of another size"))?;
            *data = floats(bytes);
            Ok::<(), String>(())
        };
        for (name, affine) in served.layers_mut() {
            fill(format!("{name}.weight"), &mut affine.weight)?;
            fill(format!("{name}.bias"), &mut affine.bias)?;
        }
        served.unfolded(spec)
    }
}

/// A TorchScript file run by libtorch: for files that this process has just written, as running one is running its code.
#[derive(Debug)]
pub struct Script {
    module: CModule,
    shape: [i64; 3],
}

impl Script {
    /// Opens the file of a network with this description.
    ///
    /// # Errors
    /// When libtorch cannot.
    pub fn open(path: &Path, spec: &NetSpec) -> Result<Self, String> {
        let input = spec.input;
        let shape = [input.channels, input.height, input.width].map(|size| size as i64);
        Ok(Self { module: CModule::load(path).map_err(failed)?, shape })
    }

    /// Policy and value logits for the planes of `batch` positions.
    ///
    /// # Errors
    /// When libtorch fails, or the file gives something else.
    pub fn run(&self, planes: &[f32], batch: usize) -> Result<[Vec<f32>; 2], String> {
        let _guard = tch::no_grad_guard();
        let [channels, height, width] = self.shape;
        let run = || -> Result<Option<[Vec<f32>; 2]>, TchError> {
            let planes = Tensor::f_from_slice(planes)?.f_view([batch as i64, channels, height, width])?;
            let IValue::Tuple(parts) = self.module.forward_is(&[IValue::Tensor(planes)])? else { return Ok(None) };
            let [IValue::Tensor(policy), IValue::Tensor(value)] = &parts[..] else { return Ok(None) };
            let flat = |tensor: &Tensor| Vec::<f32>::try_from(tensor.f_contiguous()?.f_view(-1)?);
            Ok(Some([flat(policy)?, flat(value)?]))
        };
        run().map_err(failed)?.ok_or_else(|| "it does not give a policy and a value".to_owned())
    }
}

fn failed(error: TchError) -> String {
    format!("libtorch failed: {}", one_line(&error.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::testing::{planes, specs, trained};

    #[test]
    fn an_archive_runs_in_libtorch_and_gives_its_weights_back() {
        let scratch = tempfile::tempdir().unwrap();
        let path = scratch.path().join("net.pt");
        for spec in specs() {
            let weights = trained(&spec, 1);
            let graph = Graph::new(&spec, &weights).unwrap();
            let metadata = [("sparring".to_owned(), "description".to_owned())];
            let bytes = to_torchscript(&spec, &weights, &metadata).unwrap();
            let file = parse(&bytes).unwrap();
            assert_eq!(file.metadata(), Some("description"));
            let back = file.weights(&spec).unwrap();
            assert!(Graph::new(&spec, &back).unwrap() == graph, "{spec}");

            std::fs::write(&path, &bytes).unwrap();
            let script = Script::open(&path, &spec).unwrap();
            for batch in [1, 2, 7] {
                let [policy, value] = script.run(&planes(&spec, batch, 3), batch).unwrap();
                assert_eq!((policy.len(), value.len()), (batch * spec.action_count(), batch * 3));
            }
            std::fs::remove_file(&path).unwrap();
        }
    }

    #[test]
    fn a_function_gets_two_outputs() {
        let head = "  def forward(self, planes: Tensor) -> Tensor:\n    a = f(planes)\n";
        let wanted = "  def forward(self, planes: Tensor) -> Tuple[Tensor, Tensor]:\n    a = f(planes)\n    return (a, g(a, [1]))\n";
        for end in
            ["    return torch.cat([a, g(a, [1])], 1)\n", "    _1 = torch.cat([a, g(a, [1])], 1)\n    return _1\n"]
        {
            assert_eq!(parted(&format!("{head}{end}")).as_deref(), Some(wanted));
        }
        assert_eq!(parted(&format!("{head}    return a\n")), None);
    }

    #[test]
    fn changes_are_noticed() {
        let spec = &specs()[0];
        let bytes = to_torchscript(spec, &trained(spec, 1), &[]).unwrap();
        let code = bytes.windows(9).position(|window| window == b"torch.add").expect("the code adds");
        let mut changed = bytes.clone();
        changed[code + 6..code + 9].copy_from_slice(b"sub");
        assert!(parse(&changed).is_err_and(|problem| problem.contains("cut short") || problem.contains("altered")));
        for length in [0, 1, 30, bytes.len() / 2, bytes.len() - 1] {
            assert!(parse(&bytes[..length]).is_err());
        }
        let other = &specs()[3];
        assert!(parse(&bytes).unwrap().weights(other).is_err());
    }
}
