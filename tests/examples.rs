//! The programs in `examples/`, run as their readers would run them, and exported files in the runtimes of others.
//!
//! `scripts/test` finds or installs what they need and names it in the environment; a test whose program is not there says so.

mod common;

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use common::networks::networks;
use common::{busy, run, small_run};
use sparring::games::NAMES;

fn examples(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples").join(name)
}

/// What the environment names, unless it is not there.
fn program(variable: &str) -> Option<String> {
    let found = std::env::var(variable).ok().filter(|value| !value.is_empty());
    if found.is_none() {
        println!("skipped: {variable} is not set");
    }
    found
}

const SPARRING: &str = env!("CARGO_BIN_EXE_sparring");

/// Runs a command that must succeed; what it wrote.
fn output(command: &mut Command) -> String {
    let done = command.env("PYTHONDONTWRITEBYTECODE", "1").stdin(Stdio::null()).output().expect("it starts");
    let errors = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{command:?}: {errors}");
    String::from_utf8(done.stdout).unwrap()
}

/// Exports a network; the path of the file.
fn export(source: &Path, name: &str, words: &[&str]) -> String {
    let target = source.with_file_name(name).to_str().unwrap().to_owned();
    run([&["export", source.to_str().unwrap(), "-o", &target, "--force", "--positions", "100"], words].concat())
        .expect(0);
    target
}

#[test]
#[ignore = "slow: needs onnxruntime"]
fn onnxruntime_agrees_and_plays_whole_games() {
    let Some(packages) = program("SPARRING_ONNXRUNTIME") else { return };
    let python = |script: &Path, words: &[&str]| {
        output(Command::new("python3").arg(script).args(words).env("PYTHONPATH", &packages))
    };
    let checker = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/onnx_check.py");
    let check = |game: &str| {
        let scratch = tempfile::tempdir().unwrap();
        for (index, source) in networks(game, scratch.path()).into_iter().enumerate() {
            let forms = [&["--format", "onnx"][..], &["--format", "onnx", "--precision", "f16", "--with-mask"]];
            for (words, [bound, least]) in forms.into_iter().zip([["1e-4", "999"], ["2e-2", "990"]]) {
                let file = export(&source, "net.onnx", words);
                python(&checker, &[&file, source.to_str().unwrap(), SPARRING, bound, least]);
                if index == 1 {
                    let said = python(&examples("python/onnx_game.py"), &[&file, SPARRING]);
                    let last = said.lines().last().unwrap();
                    assert!(["p1win", "p2win", "draw"].iter().any(|end| last.ends_with(end)), "{game}: {said}");
                }
            }
        }
    };
    std::thread::scope(|scope| NAMES.iter().for_each(|game| drop(scope.spawn(|| check(game)))));
}

#[test]
#[ignore = "slow: needs PyTorch"]
fn pytorch_loads_torchscript_and_safetensors() {
    let Some(python) = program("SPARRING_PYTORCH") else { return };
    let compare = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/common/torch_check.py");
    for game in NAMES {
        let scratch = tempfile::tempdir().unwrap();
        for (index, source) in networks(game, scratch.path()).into_iter().enumerate() {
            let script = export(&source, "net.pt", &["--format", "torchscript"]);
            let weights = export(&source, "net.safetensors", &["--format", "safetensors"]);
            if index == 1 {
                let said =
                    output(Command::new(&python).arg(examples("python/torchscript.py")).args([&script, SPARRING]));
                assert!(said.contains("best first move: "), "{game}: {said}");
            }
            let said = output(Command::new(&python).arg(&compare).args([&script, &weights]));
            assert!(said.contains("equal"), "{game}: {said}");
        }
    }
}

#[test]
#[ignore = "slow: needs Chromium and onnxruntime-web"]
fn a_web_page_finds_the_best_first_move() {
    let (Some(browser), Some(runtime)) = (program("SPARRING_BROWSER"), program("SPARRING_ONNXRUNTIME_WEB")) else {
        return;
    };
    let scratch = tempfile::tempdir().unwrap();
    let network = small_run(scratch.path(), "uttt", &[]);
    let site = scratch.path().join("site");
    let mut prepare = Command::new("python3");
    prepare.arg(examples("web/prepare.py")).args([&network, site.to_str().unwrap(), SPARRING]).current_dir(&runtime);
    output(&mut prepare);

    // A port that is free now.
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut server = Command::new("python3");
    server.args(["-m", "http.server", "--bind", "127.0.0.1", &port.to_string(), "--directory"]).arg(&site);
    let mut server = server.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let began = Instant::now();
    while TcpStream::connect(("127.0.0.1", port)).is_err() {
        assert!(began.elapsed() < busy(Duration::from_secs(20)), "the server does not start");
        std::thread::sleep(Duration::from_millis(50));
    }
    let mut page = Command::new(browser);
    page.args(["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"])
        .args(["--disable-component-update", "--disable-sync", "--virtual-time-budget=60000", "--dump-dom"])
        .arg(format!("--user-data-dir={}", scratch.path().join("browser").display()))
        .arg(format!("http://127.0.0.1:{port}/index.html"));
    let shown = output(&mut page);
    server.kill().unwrap();
    server.wait().unwrap();
    let answer =
        shown.split("id=\"answer\">").nth(1).and_then(|rest| rest.split('<').next()).unwrap_or(&shown).to_owned();
    let best = answer.strip_prefix("uttt: best first move ").unwrap_or_else(|| panic!("{answer}"));
    // The same as the network alone finds here.
    let shown = run(["analyze", &format!("{network}@policy"), "--json"]).expect(0).json();
    let wanted = shown["moves"][0]["move"].as_str().unwrap_or_else(|| panic!("{shown:?}")).to_owned();
    assert!(best.starts_with(&format!("{wanted} (win ")), "{answer}, wanted {wanted}");
}
