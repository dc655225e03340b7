//! Event files read back, by the record format and by TensorBoard itself.

use std::process::Command;

use super::super::event::{Elo, Histogram, TrainStep};
use super::*;

fn step(step: u64) -> Event {
    Event::TrainStep(TrainStep { step, generation: 1, policy_loss: 1.0 / step as f64, ..TrainStep::default() })
}

fn elo(generation: u32) -> Event {
    Event::Elo(Elo { generation, elo: 100.0 * f64::from(generation), interval: (f64::NEG_INFINITY, f64::NAN) })
}

fn mark(number: u64, step: u64) -> Mark {
    Mark { number, generation: number as u32, step }
}

/// All records of a folder, in the order in which TensorBoard reads them.
fn records(folder: &Path) -> Vec<Record> {
    let mut out = Vec::new();
    for file in event_files(folder).unwrap() {
        let bytes = fs::read(&file).unwrap();
        let (mut rest, mut left) = (&bytes[..], bytes.len() as u64);
        while let Some((data, length)) = next_record(&mut rest, left).unwrap() {
            left -= length;
            out.push(Record::parse_from_bytes(&data).unwrap());
        }
        assert_eq!(left, 0, "{} has a torn tail", file.display());
    }
    out
}

/// The steps at which `tag` was recorded.
fn steps(folder: &Path, tag: &str) -> Vec<i64> {
    let has = |record: &&Record| record.get_summary().get_value().iter().any(|value| value.get_tag() == tag);
    records(folder).iter().filter(has).map(Record::get_step).collect()
}

/// A run of two generations of three steps, then two steps that no state holds.
fn interrupted(folder: &Path) {
    let mut charts = TensorBoard::create(folder).unwrap();
    for generation in 1..=2u32 {
        for number in 1..=3 {
            charts.observe(&step(u64::from(generation - 1) * 3 + number)).unwrap();
        }
        charts.observe(&elo(generation)).unwrap();
        charts.mark(&mark(generation.into(), u64::from(generation) * 3)).unwrap();
    }
    charts.observe(&step(7)).unwrap();
    charts.observe(&step(8)).unwrap();
}

#[test]
fn resuming_repeats_nothing_wherever_the_file_was_torn() {
    let dir = tempfile::tempdir().unwrap();
    interrupted(dir.path());
    let file = event_files(dir.path()).unwrap().remove(0);
    let whole = fs::read(&file).unwrap();
    let saved = scan(&file, &mark(2, 6)).unwrap();
    assert!(saved.marked && saved.length < whole.len() as u64);
    for length in (saved.length..=whole.len() as u64).step_by(7) {
        for old in event_files(dir.path()).unwrap() {
            fs::remove_file(old).unwrap();
        }
        fs::write(&file, &whole[..length as usize]).unwrap();
        let (mut charts, notice) = TensorBoard::resume(dir.path(), &mark(2, 6)).unwrap();
        assert_eq!(notice, None);
        charts.observe(&step(7)).unwrap();
        charts.observe(&elo(3)).unwrap();
        assert_eq!(steps(dir.path(), "loss/policy"), [1, 2, 3, 4, 5, 6, 7], "cut to {length}");
        assert_eq!(steps(dir.path(), "elo/elo"), [1, 2, 3]);
    }
    // Again, at once, and then back to an older state: the files keep their order.
    let (mut charts, _) = TensorBoard::resume(dir.path(), &mark(2, 6)).unwrap();
    charts.observe(&step(7)).unwrap();
    charts.mark(&mark(3, 7)).unwrap();
    let (mut charts, notice) = TensorBoard::resume(dir.path(), &mark(3, 7)).unwrap();
    assert_eq!(notice, None);
    charts.observe(&step(8)).unwrap();
    assert_eq!(steps(dir.path(), "loss/policy"), [1, 2, 3, 4, 5, 6, 7, 8]);
    let (mut charts, _) = TensorBoard::resume(dir.path(), &mark(1, 3)).unwrap();
    charts.observe(&step(4)).unwrap();
    assert_eq!(steps(dir.path(), "loss/policy"), [1, 2, 3, 4]);
    drop(TensorBoard::create(dir.path()).unwrap());
    assert_eq!(event_files(dir.path()).unwrap().len(), 1);
}

#[test]
fn damage_is_cut_off_and_told() {
    let dir = tempfile::tempdir().unwrap();
    interrupted(dir.path());
    let file = event_files(dir.path()).unwrap().remove(0);
    let mut bytes = fs::read(&file).unwrap();
    let first = scan(&file, &mark(1, 3)).unwrap().length as usize;
    bytes[first] ^= 0xff;
    fs::write(&file, bytes).unwrap();
    let (mut charts, notice) = TensorBoard::resume(dir.path(), &mark(2, 6)).unwrap();
    assert!(notice.unwrap().contains("have a gap"));
    charts.observe(&step(7)).unwrap();
    assert_eq!(steps(dir.path(), "loss/policy"), [1, 2, 3, 7]);
    let error = TensorBoard::create(&dir.path().join("gone")).unwrap_err().to_string();
    assert!(error.contains("gone"), "{error}");
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_is_an_error_and_no_panic() {
    // /dev/full refuses every write as a full disk does.
    let file = OpenOptions::new().append(true).open("/dev/full").unwrap();
    let path = PathBuf::from("/somewhere/tb/events");
    let mut charts = TensorBoard { path, file, length: 0, described: BTreeSet::new() };
    let error = charts.observe(&step(1)).unwrap_err().to_string();
    assert_eq!(error, "recording failed: no space left in /somewhere/tb: free some and start again");
}

/// A Python with the package `tensorboard`, installed once into the user's cache folder. `None` where there
/// is no Python.
fn python() -> Option<PathBuf> {
    const PACKAGE: &str = "tensorboard==2.21.0";
    if !Command::new("python3").arg("--version").output().is_ok_and(|output| output.status.success()) {
        return None;
    }
    let folder = crate::util::places::cache_dir()?.join(PACKAGE.replace("==", "-"));
    let python = folder.join("bin/python");
    let works = || Command::new(&python).args(["-c", "import tensorboard"]).output().is_ok_and(|o| o.status.success());
    if !works() {
        let made = Command::new("python3").args(["-m", "venv", "--clear"]).arg(&folder).status().unwrap();
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", PACKAGE];
        let installed = made.success() && Command::new(&python).args(pip).status().unwrap().success();
        assert!(installed && works(), "{PACKAGE} cannot be installed; is there a network?");
    }
    Some(python)
}

/// Prints what TensorBoard makes of a folder: first as its charts show it, then as the plain accumulator that
/// many scripts use reads it.
const READER: &str = r#"
import json, sys, math
from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
folder = sys.argv[1]
charts = plugin_event_accumulator.EventAccumulator(folder, tensor_size_guidance={"scalars": 0, "histograms": 0, "text": 0})
charts.Reload()
from tensorboard.util import tensor_util
series = {}
for plugin in ("scalars", "text"):
    for tag in charts.PluginTagToContent(plugin):
        values = [(e.step, tensor_util.make_ndarray(e.tensor_proto).item()) for e in charts.Tensors(tag)]
        series[tag] = [[s, v.decode() if isinstance(v, bytes) else (v if math.isfinite(v) else str(v))] for s, v in values]
histograms = {}
for tag in charts.PluginTagToContent("histograms"):
    event = charts.Tensors(tag)[-1]
    histograms[tag] = [event.step, tensor_util.make_ndarray(event.tensor_proto).tolist()]
plain = event_accumulator.EventAccumulator(folder, {"scalars": 0})
plain.Reload()
print(json.dumps({
    "series": series, "histograms": histograms,
    "help": charts.SummaryMetadata("loss/policy").summary_description,
    "plain": [e.step for e in plain.Scalars("loss/policy")],
}))
"#;

#[test]
#[ignore = "slow: installs the Python package tensorboard once"]
fn tensorboard_reads_what_was_written() {
    let Some(python) = python() else {
        eprintln!("skipped: there is no python3");
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    interrupted(dir.path());
    let (mut charts, _) = TensorBoard::resume(dir.path(), &mark(2, 6)).unwrap();
    charts.observe(&step(7)).unwrap();
    let board = "X | . | O\n- + - + -\n* not markdown *";
    charts.observe(&Event::SampleGame { generation: 3, text: board.to_owned() }).unwrap();
    let weights: Vec<f32> = (0..1000).map(|i| i as f32 / 1000.0).collect();
    charts.observe(&Event::Histogram(Histogram::of(3, "weights/trunk", &weights).unwrap())).unwrap();
    charts.observe(&elo(3)).unwrap();

    let output = Command::new(python).args(["-c", READER]).arg(dir.path()).output().unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let read: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    let series = &read["series"];
    let policy: Vec<(u64, f64)> = serde_json::from_value(series["loss/policy"].clone()).unwrap();
    let expected: Vec<(u64, f64)> = (1..=7).map(|step| (step, f64::from(1.0f32 / step as f32))).collect();
    assert_eq!(policy.iter().map(|point| point.0).collect::<Vec<_>>(), (1..=7).collect::<Vec<_>>());
    assert!(policy.iter().zip(&expected).all(|(a, b)| (a.1 - b.1).abs() < 1e-6), "{policy:?}");
    assert_eq!(read["plain"], serde_json::json!([1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(series["elo/elo"], serde_json::json!([[1, 100.0], [2, 200.0], [3, 300.0]]));
    assert_eq!(series["elo/low"][0], serde_json::json!([1, "-inf"]));
    assert_eq!(series["selfplay/game"][0][1], "    X | . | O\n    - + - + -\n    * not markdown *");
    assert!(read["help"].as_str().unwrap().starts_with("Cross-entropy of the policy"));
    let buckets: (u64, Vec<(f64, f64, f64)>) =
        serde_json::from_value(read["histograms"]["weights/trunk"].clone()).unwrap();
    assert_eq!(buckets.0, 3);
    assert_eq!(buckets.1.iter().map(|bucket| bucket.2).sum::<f64>(), 1000.0);
    assert!((buckets.1.last().unwrap().1 - 0.999).abs() < 1e-6);
    // Every number of every event is there under its tag.
    for scalar in step(7).scalars().iter().chain(&elo(3).scalars()) {
        assert!(series.get(scalar.tag).is_some(), "{}", scalar.tag);
    }
}
