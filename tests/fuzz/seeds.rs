//! The made part of the corpus: small sound inputs, and those that were thought of as dangerous.

use std::time::Duration;

use sparring::arena::{GamesFile, Header};
use sparring::data::{self, Finish, GameRecord, Origin, PlyKind, PlyRecord, RecordEnd, RecordWriter};
use sparring::game::{Game, Outcome, Player, WdlAbs, full_name, legal_list};
use sparring::games::connect4::ConnectFour;
use sparring::games::tictactoe::TicTacToe;
use sparring::games::{GameVisitor, NAMES, dispatch};
use sparring::net::{Architecture, Checkpoint, CheckpointInfo, Mlp, NetSpec, Resnet, Weights};
use sparring::play::{Clock, Finished};
use sparring::run::config::RunConfig;
use sparring::run::dir::RunDir;
use sparring::run::rating::{Meeting, Rated};
use sparring::run::state::{NAME, RunState, Stage, TrainerFile};
use sparring::run::strict::resolved_json;
use sparring::train::{OptimizerParams, SgdParams, TrainParams, Trainer};
use sparring::util::rng::Stream;
use sparring::util::stats::GameCounts;

use super::targets::seal;

/// A name and contents.
pub(super) type Seed = (String, Vec<u8>);

/// Games with options that are worth a position of their own.
const SPECS: [&str; 5] =
    ["othello:size=4", "othello:size=10", "zener:setup=official", "zener:max_plies=12", "zener:max_plies=10000"];

/// The files of a target.
pub fn of(target: &str) -> Vec<Seed> {
    match target {
        "checkpoint" => checkpoints(),
        "training_state" => training_states(),
        "run_state" => run_states(),
        "records" => records(),
        "games_file" => games_files(),
        "config" => configs(),
        "notation" => notations(),
        "ugi" => conversations(),
        other => panic!("there is no target {other}"),
    }
}

pub(super) fn seed(name: &str, bytes: impl Into<Vec<u8>>) -> Seed {
    (name.to_owned(), bytes.into())
}

/// What `write` writes into the file that it is given.
pub(super) fn file(write: impl FnOnce(&std::path::Path)) -> Vec<u8> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.games");
    write(&path);
    std::fs::read(path).unwrap()
}

/// A safetensors file with the text of its header changed.
fn with_header(bytes: &[u8], from: &str, to: &str) -> Vec<u8> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header = std::str::from_utf8(&bytes[8..8 + length]).unwrap();
    assert!(header.contains(from), "{from} in {header}");
    let header = header.replacen(from, to, 1);
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &bytes[8 + length..]].concat()
}

fn network<G: Game>(game: &G, architecture: Architecture) -> Checkpoint {
    let info = CheckpointInfo {
        step: 120,
        run: "first".to_owned(),
        elo: Some(12.5),
        ..CheckpointInfo::untrained(game, NetSpec::for_game(game, architecture))
    };
    Checkpoint { weights: Weights::init(&info.network, &mut Stream::test(3)), info }
}

fn checkpoints() -> Vec<Seed> {
    let saved = |checkpoint: &Checkpoint| file(|path| checkpoint.save(path).unwrap());
    let small = || Architecture::Mlp(Mlp { hidden: vec![1] });
    let mlp = saved(&network(&TicTacToe, small()));
    let resnet =
        Resnet { blocks: 2, channels: 2, global_pooling: true, policy_channels: 1, value_channels: 1, value_hidden: 2 };
    let sealed = |from: &str, to: &str| seal::checkpoint(&with_header(&mlp, from, to)).unwrap();
    let last = mlp.len() - 4;
    let weight = |number: f32| seal::checkpoint(&[&mlp[..last], &number.to_le_bytes()].concat()).unwrap();
    let mut seeds = super::exports::exports(&network(&TicTacToe, small()));
    seeds.extend([
        seed("valid-mlp", mlp.clone()),
        seed("valid-resnet", saved(&network(&TicTacToe, Architecture::Resnet(resnet)))),
        seed("valid-flat-policy", saved(&network(&ConnectFour, small()))),
        seed("bad-empty", ""),
        seed("bad-cut", &mlp[..mlp.len() / 2]),
        seed("bad-longer", [&mlp[..], b"x"].concat()),
        seed("bad-header-length", [&u64::MAX.to_le_bytes()[..], &mlp[8..]].concat()),
        seed("bad-header-of-100-mb", [&100_000_000u64.to_le_bytes()[..], &mlp[8..]].concat()),
        seed("bad-nested", [&20_000u64.to_le_bytes()[..], &[b'['; 20_000]].concat()),
        seed("bad-format", with_header(&mlp, r#"\"format\":1"#, r#"\"format\":2"#)),
        seed("bad-digest", with_header(&mlp, r#"\"step\":120"#, r#"\"step\":121"#)),
        seed("bad-key", sealed(r#"\"step\":120"#, r#"\"steps\":120"#)),
        seed("bad-step", sealed(r#"\"step\":120"#, r#"\"step\":1e40"#)),
        seed("bad-network-too-large", sealed(r#"\"hidden\":[1]"#, r#"\"hidden\":[8192,8192,8192,8192]"#)),
        seed("bad-network-overflow", sealed(r#"\"height\":3"#, r#"\"height\":18446744073709551615"#)),
        seed("bad-network-empty", sealed(r#"\"hidden\":[1]"#, r#"\"hidden\":[]"#)),
        seed(
            "bad-shape-overflow",
            with_header(&mlp, r#""shape":[1]"#, r#""shape":[18446744073709551615,18446744073709551615]"#),
        ),
        seed("bad-shape-of-nothing", with_header(&mlp, r#""shape":[1]"#, r#""shape":[0,18446744073709551615]"#)),
        seed("bad-type", with_header(&mlp, r#""dtype":"F32""#, r#""dtype":"F64""#)),
        seed("bad-name", sealed(r#""layers.0.bias""#, r#""layers.0.\u001b[2J""#)),
        seed("bad-game", sealed(r#"\"tictactoe\""#, r#"\"zener:max_plies=18446744073709551615\""#)),
        seed("bad-not-a-number", weight(f32::NAN)),
        seed("bad-infinite", weight(f32::INFINITY)),
    ]);
    seeds
}

fn training_states() -> Vec<Seed> {
    let saved = |trainer: &Trainer| file(|path| trainer.save_state(path).unwrap());
    let trainer = super::targets::tiny_trainer();
    let first = saved(&trainer);
    let other = |params: TrainParams, hidden: usize| {
        let spec = NetSpec::for_game(&TicTacToe, Architecture::Mlp(Mlp { hidden: vec![hidden] }));
        let weights = Weights::init(&spec, &mut Stream::test(4));
        saved(&Trainer::new(&spec, &weights, params, tch::Device::Cpu, 1).unwrap())
    };
    let sgd = TrainParams { optimizer: OptimizerParams::Sgd(SgdParams::default()), ..TrainParams::default() };
    let sealed = |from: &str, to: &str| seal::training_state(&with_header(&first, from, to)).unwrap();
    let last = first.len() - 4;
    vec![
        seed("valid-first", first.clone()),
        seed("valid-later", sealed(r#"\"step\":0"#, r#"\"step\":77"#)),
        seed("bad-empty", ""),
        seed("bad-cut", &first[..first.len() - 1]),
        seed("bad-header-length", [&u64::MAX.to_le_bytes()[..], &first[8..]].concat()),
        seed("bad-checksum", with_header(&first, r#"\"step\":0"#, r#"\"step\":1"#)),
        seed("bad-format", with_header(&first, r#"\"format\":1"#, r#"\"format\":9"#)),
        seed("bad-network", other(TrainParams::default(), 3)),
        seed("bad-optimizer", other(sgd, 2)),
        seed("bad-group", with_header(&first, r#""weights/"#, r#""height/"#)),
        seed("bad-name", with_header(&first, r#""weights/"#, r#""weights"#)),
        seed("bad-shape-of-nothing", with_header(&first, r#""shape":[2]"#, r#""shape":[0,18446744073709551615]"#)),
        seed("bad-moments", sealed(r#"\"moments\":["#, r#"\"moments\":[\"weights\","#)),
        seed("bad-not-a-number", seal::training_state(&[&first[..last], &f32::NAN.to_le_bytes()].concat()).unwrap()),
    ]
}

fn run_states() -> Vec<Seed> {
    let saved = |state: &RunState| {
        let folder = tempfile::tempdir().unwrap();
        let dir = RunDir::new(folder.path());
        std::fs::create_dir(folder.path().join("state")).unwrap();
        state.save(&dir).unwrap();
        std::fs::read(dir.state_file(NAME)).unwrap()
    };
    let first = saved(&RunState::new());
    let met = |a, b| Meeting { a, b, games: GameCounts { wins: 7, draws: 2, losses: 3 } };
    let later = saved(&RunState {
        run: "crc32:01234567".to_owned(),
        mark: 17,
        generation: 3,
        stage: Stage::Learn { done: 5, total: 40 },
        step: 85,
        samples: 85 * 256,
        trainer: Some(TrainerFile {
            name: "step-000000085.state".to_owned(),
            digest: "crc32:89abcdef:1234".to_owned(),
        }),
        best: 1,
        best_digest: "crc32:89abcdef:2345".to_owned(),
        games: 120,
        positions: 4500,
        rejected: 2,
        rollbacks: 1,
        rate_factor: 0.3,
        grown: Vec::new(),
        window_totals: vec![0, 1024, 2048, 4096],
        meetings: vec![
            met(Rated::Generation(1), Rated::Anchor),
            met(Rated::Generation(1), Rated::Generation(0)),
            met(Rated::Generation(2), Rated::Generation(1)),
        ],
        hours: 0.125,
        cpu_hours: 0.25,
    });
    let changed = |from: &str, to: &str| {
        let text = String::from_utf8_lossy(&later[24..later.len() - 4]).into_owned();
        assert!(text.contains(from), "{from} in {text}");
        seal::run_state(&[&later[..24], text.replacen(from, to, 1).as_bytes(), &[0; 4]].concat()).unwrap()
    };
    let numbered = |format: u8| seal::run_state(&[&later[..12], &[format], &later[13..]].concat()).unwrap();
    vec![
        seed("valid-first", first.clone()),
        seed("valid-later", later.clone()),
        seed("valid-format-2", numbered(2)),
        seed("bad-empty", ""),
        seed("bad-cut", &later[..later.len() - 1]),
        seed("bad-checksum", [&later[..later.len() - 1], b"?"].concat()),
        seed("bad-length", [&later[..16], &u64::MAX.to_le_bytes()[..], &later[24..]].concat()),
        seed("bad-kind", seal::run_state(&[&later[..8], b"ABCD", &later[12..]].concat()).unwrap()),
        seed("bad-format", numbered(200)),
        seed("bad-no-generation", changed(r#""generation":3"#, r#""generation":0"#)),
        seed("bad-last-generation", changed(r#""generation":3"#, r#""generation":4294967295"#)),
        seed("bad-best", changed(r#""best":1"#, r#""best":4"#)),
        seed("bad-stage", changed(r#""done":5"#, r#""done":50"#)),
        seed("bad-trainer-elsewhere", changed("step-000000085.state", "../../elsewhere")),
        seed("bad-trainer-nowhere", changed("step-000000085.state", "..")),
        seed("bad-count", changed(r#""games":120"#, r#""games":18446744073709551615"#)),
        seed("bad-totals", changed("2048,4096", "4096,2048")),
        seed("bad-no-totals", changed("[0,1024,2048,4096]", "[]")),
        seed("bad-meeting", changed(r#""wins":7"#, r#""wins":18446744073709551615"#)),
        seed("bad-hours", changed("0.125", "-1")),
        seed("bad-hours-beyond-numbers", changed("0.125", "1e999")),
        seed("bad-nested", seal::run_state(&[&later[..24], &[b'['; 5000], &[0; 4]].concat()).unwrap()),
    ]
}

/// A game of random moves, with policies and values as from searches.
struct RandomGame(u32);

impl GameVisitor for RandomGame {
    type Output = GameRecord;

    fn visit<G: Game>(self, game: G) -> GameRecord {
        let mut random = Stream::test(self.0.into());
        let mut state = game.start(&mut random);
        let start = game.state_text(&state);
        let mut plies = Vec::new();
        while game.end(&state).is_none() {
            let legal = legal_list(&game, &state);
            let kind = match plies.len() {
                0 => PlyKind::Opening,
                1 => PlyKind::Fast,
                _ if legal.len() == 1 => PlyKind::Forced,
                _ => PlyKind::Full,
            };
            let mut policy = vec![0.0; if kind == PlyKind::Full { legal.len() } else { 0 }];
            if let Some(share) = policy.first_mut() {
                *share = 1.0;
            }
            let value = WdlAbs { first: 0.5, draw: 0.25, second: 0.25 };
            let proven = (plies.len() == 4).then_some(Outcome::Win(Player::Second));
            let action = legal[random.below(legal.len())];
            plies.push(PlyRecord { action, kind, value, policy, proven, weight: 1.0 });
            game.play(&mut state, action);
        }
        GameRecord {
            game: full_name(&game),
            rules_version: G::RULES_VERSION,
            seed: 7,
            generation: 1,
            index: self.0,
            start,
            end: RecordEnd::from(game.end(&state).unwrap()),
            plies,
        }
    }
}

fn random_games(spec: &str, count: u32) -> Vec<GameRecord> {
    (0..count).map(|index| dispatch(spec, RandomGame(index)).unwrap()).collect()
}

/// A file of one chunk.
fn chunk(raw: &[u8], announced: u32, count: u32) -> Vec<u8> {
    let payload = zstd::bulk::compress(raw, 3).unwrap();
    let mut bytes = [&b"SPARGAME"[..], &1u32.to_le_bytes(), &[0; 4]].concat();
    for number in [payload.len() as u32, announced, count, 0] {
        bytes.extend(number.to_le_bytes());
    }
    bytes.extend(payload);
    seal::records(&bytes).unwrap()
}

fn records() -> Vec<Seed> {
    let written = |records: &[GameRecord]| file(|path| data::write(path, records).unwrap());
    let games = random_games("tictactoe", 3);
    let whole = written(&games);
    let origin: Origin = games[0].origin();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.games");
    let mut writer = RecordWriter::open(&path, origin).unwrap().writer;
    writer.append(&games[..1]).unwrap();
    writer.append(&games[1..]).unwrap();
    let journal = std::fs::read(RecordWriter::journal_of(&path)).unwrap();
    let mut record = Vec::new();
    data::encode_record(&games[0], &mut record).unwrap();
    let framed = |record: &[u8]| [&(record.len() as u32).to_le_bytes()[..], record].concat();
    let one = framed(&record);
    let twice = [&one[..], &one].concat();
    let zeros = vec![0; 16 << 20];
    // As many of the smallest records as there can be: no texts, no plies.
    let smallest = [&28u32.to_le_bytes()[..], &[0; 28]].concat();
    let many = smallest.repeat((16 << 20) / smallest.len());
    let mut other = games.clone();
    other[1].plies[0].action.0 = 60_000;
    vec![
        seed("valid-file", whole.clone()),
        seed("valid-zener", written(&random_games("zener:setup=official,max_plies=30", 1))),
        seed("valid-othello", written(&random_games("othello:size=4", 2))),
        seed("valid-no-games", written(&[])),
        seed("valid-journal", journal.clone()),
        seed("piece-record", record.clone()),
        seed("piece-empty", ""),
        seed("bad-cut", &whole[..whole.len() - 3]),
        seed("bad-journal-cut", &journal[..journal.len() - 3]),
        seed("bad-header", [b"SPARGAMF", &whole[8..]].concat()),
        seed("bad-format", seal::records(&[&whole[..8], &[9], &whole[9..]].concat()).unwrap()),
        seed("bad-length", [&whole[..16], &u32::MAX.to_le_bytes()[..], &whole[20..]].concat()),
        seed("bad-illegal-move", written(&other)),
        seed("bad-more-than-a-chunk", chunk(&one, (16 << 20) + 1, 1)),
        seed("bad-unpacks-to-less", chunk(&one, one.len() as u32 + 1, 1)),
        seed("bad-unpacks-to-more", chunk(&twice, one.len() as u32, 1)),
        seed("bad-count", chunk(&one, one.len() as u32, u32::MAX)),
        seed("bad-count-too-small", chunk(&twice, twice.len() as u32, 1)),
        seed("bad-zeros", chunk(&zeros, zeros.len() as u32, 1 << 22)),
        seed("bad-zeros-many-announced", chunk(&zeros, zeros.len() as u32, 500_000)),
        seed("bad-many-records", chunk(&many, many.len() as u32, (many.len() / smallest.len()) as u32)),
    ]
}

/// The file of a match of two games.
struct Match;

impl GameVisitor for Match {
    type Output = Vec<u8>;

    fn visit<G: Game>(self, game: G) -> Vec<u8> {
        let header = Header {
            players: ["random", "mcts:5"].map(str::to_owned).to_vec(),
            networks: vec![None, Some("0123".to_owned())],
            encounters: vec![[0, 1]],
            ..Header::new(&game, "4 random plies".to_owned(), 7)
        };
        file(|path| {
            let (mut file, _) = GamesFile::open(&game, path, header.clone(), None).unwrap();
            for index in 0..2 {
                let mut record = RandomGame(index).visit(game.clone());
                record.plies.iter_mut().skip(1).for_each(|ply| (ply.kind, ply.policy) = (PlyKind::Fast, Vec::new()));
                let broken = index == 1;
                if broken {
                    record.plies.pop();
                    let mut last = game.parse_state(&record.start).unwrap();
                    record.plies.iter().for_each(|ply| game.play(&mut last, ply.action));
                    let outcome = Outcome::Win(game.to_move(&last).other());
                    record.end = RecordEnd { outcome, reason: Finish::Adjudicated };
                }
                let value = WdlAbs { first: 0.5, draw: 0.25, second: 0.25 };
                let opinions = (0..record.plies.len()).map(|ply| (ply % 2 == 1).then_some(value)).collect();
                let clock = |moves| Clock { thinking: Duration::from_millis(1500), moves };
                let finished = Finished {
                    index: index.into(),
                    seats: if index == 0 { [0, 1] } else { [1, 0] },
                    record,
                    fault: broken.then(|| "it broke off".to_owned()),
                    clocks: [clock(2), clock(1)],
                    opinions,
                };
                file.add(&game, &finished).unwrap();
            }
        })
    }
}

fn games_files() -> Vec<Seed> {
    let made = |spec| dispatch(spec, Match).unwrap();
    let small = String::from_utf8(made("tictactoe")).unwrap();
    let changed = |from: &str, to: &str| {
        assert!(small.contains(from), "{from} in {small}");
        seal::games_file(small.replacen(from, to, 1).as_bytes()).unwrap()
    };
    let lines: Vec<&str> = small.split_inclusive('\n').collect();
    vec![
        seed("valid-tictactoe", small.clone()),
        seed("valid-torn", &small.as_bytes()[..small.len() - 9]),
        seed("valid-out-of-order", [lines[0], lines[2], lines[1]].concat()),
        seed("valid-uttt", made("uttt")),
        seed("valid-zener", made("zener:setup=official,max_plies=20")),
        seed("bad-empty", ""),
        seed("bad-checksum", small.replacen("1.5", "1.6", 1)),
        seed("bad-no-header", lines[1]),
        seed("bad-format", changed(r#""sparring_match":1"#, r#""sparring_match":99999999999"#)),
        seed("bad-game", changed(r#""game":"tictactoe""#, r#""game":"chess""#)),
        seed("bad-twice", [lines[0], lines[1], lines[1]].concat()),
        seed("bad-index", changed(r#""index":0"#, r#""index":18446744073709551614"#)),
        seed("bad-seats", changed(r#""encounters":[[0,1]]"#, r#""encounters":[[0,18446744073709551615]]"#)),
        seed("bad-no-encounters", changed(r#""encounters":[[0,1]]"#, r#""encounters":[]"#)),
        seed("bad-seconds", changed(r#""seconds":[1.5"#, r#""seconds":[1e300"#)),
        seed("bad-evaluation", changed("[0.5,0.25,0.25]", "[0.5,0.25,0.5]")),
        seed("bad-evaluations", changed(r#""evaluations":["#, r#""evaluations":[null,"#)),
        seed("bad-result", changed(r#""result":"1-0""#, r#""result":"9-9""#)),
        seed("bad-start", changed(r#""start":"3/3/3 x""#, r#""start":"99999999999999999999/3/3 x""#)),
        seed("bad-not-text", [small.as_bytes(), b"\xff\xfe\n"].concat()),
        // Said, but harmless: what steers a terminal is not passed on to it.
        seed("piece-escapes", changed("it broke off", r"\u001b[2J\u009b2J")),
    ]
}

fn configs() -> Vec<Seed> {
    let full = resolved_json(&RunConfig::parse("config.json", r#"{"game": "tictactoe"}"#, &[]).unwrap());
    let mut seeds = vec![
        seed("valid-full", full.clone()),
        seed(
            "valid-schema",
            r#"{"$schema": "schema.json", "game": "zener:setup=official,max_plies=300", "seed": 1e3}"#,
        ),
        seed("valid-sets", "{\"game\": \"uttt\"}\0search.draw_score=0.1\nnetwork={\"type\": \"mlp\"}\ndevice=cpu"),
        seed(
            "valid-sections",
            r#"{"game": "othello:size=6", "network": {"type": "resnet", "blocks": 1, "channels": 8},
                "training": {"schedule": {"type": "steps", "at": [5, 9]}, "optimizer": {"type": "sgd"}},
                "stop": {"iterations": 3}, "gate": {"mode": "off", "anchor_games": 0}}"#,
        ),
    ];
    seeds.extend(NAMES.iter().map(|name| seed(&format!("valid-{name}"), format!("{{\"game\": \"{name}\"}}\n"))));
    let bad: [(&str, &[u8]); 18] = [
        ("empty", b""),
        ("nothing", b"{}"),
        ("not-text", b"{\"game\": \"utt\xff\"}"),
        ("comment", b"{\"game\": \"uttt\" /* x */}"),
        ("trailing", b"{\"game\": \"uttt\"} x"),
        ("open", b"{\"game\": \"uttt\", \"search\": {\"simulations\": 3"),
        ("twice", b"{\"game\": \"uttt\", \"game\": \"zener\"}"),
        ("key", b"{\"game\": \"uttt\", \"serach\": {\"\xc3\xa4\": 1}}"),
        ("types", b"{\"game\": 3, \"search\": [], \"network\": null, \"seed\": \"x\", \"training\": {\"optimizer\": 3}}"),
        ("numbers", b"{\"game\": \"uttt\", \"seed\": -1, \"training\": {\"batch_size\": 1e999, \"learning_rate\": 9e999999999999}}"),
        ("huge-number", b"{\"game\": \"uttt\", \"seed\": 99999999999999999999999999999999999999999999999999e-30}"),
        ("option", b"{\"game\": \"othello:size=18446744073709551616\"}"),
        ("options", b"{\"game\": \"zener:max_plies=1,max_plies=2\"}"),
        ("tag", b"{\"game\": \"uttt\", \"network\": {\"type\": \"transformer\", \"hidden\": [1, [2]]}}"),
        ("network", b"{\"game\": \"uttt\", \"network\": {\"type\": \"mlp\", \"hidden\": []}}"),
        ("sets", b"{\"game\": \"uttt\"}\0=\na..b=1\ngame.x=1\nsearch=3\nsearch.simulations=[[\n"),
        ("escapes", b"{\"game\": \"uttt\", \"\\u001b[2J\": \"\\ud800\"}"),
        ("list", b"[]"),
    ];
    seeds.extend(bad.into_iter().map(|(name, text)| seed(&format!("bad-{name}"), text)));
    seeds.push(seed("bad-nested", "[".repeat(3000)));
    seeds.push(seed("bad-nested-objects", format!("{{\"game\": \"uttt\", \"search\": {}", "{\"a\":".repeat(500))));
    let many: Vec<String> = (0..60).map(|number| format!("\"key{number}\": {number}")).collect();
    seeds.push(seed("bad-many-keys", format!("{{\"game\": \"uttt\", {}}}", many.join(", "))));
    seeds
}

/// A position after some random moves, and the moves to two thirds of the game from there.
struct Halfway(u64);

impl GameVisitor for Halfway {
    type Output = [(String, Vec<String>); 3];

    fn visit<G: Game>(self, game: G) -> Self::Output {
        let mut random = Stream::test(self.0);
        let start = game.start(&mut random);
        let mut states = vec![start];
        let mut moves = Vec::new();
        while let Some(state) = states.last().filter(|state| game.end(state).is_none()) {
            let action = game.random_action(state, &mut random, &mut Vec::new());
            moves.push(game.action_text(action));
            let mut next = state.clone();
            game.play(&mut next, action);
            states.push(next);
        }
        let (third, last) = (moves.len() / 3, moves.len());
        let some = moves[third..(third + 12).min(2 * third)].to_vec();
        let fen = |ply: usize| game.state_text(&states[ply]);
        [(fen(0), moves[..third.min(8)].to_vec()), (fen(third), some), (fen(last), Vec::new())]
    }
}

fn notations() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for name in NAMES.iter().copied().chain(SPECS) {
        let plain = name.replace([':', '=', ','], "-");
        for ((fen, moves), when) in dispatch(name, Halfway(5)).unwrap().into_iter().zip(["start", "middle", "end"]) {
            let moves = moves.join(" ");
            let more = if when == "end" {
                String::new()
            } else {
                format!("startpos moves {moves} # some\n{fen} moves {moves}\n")
            };
            seeds.push(seed(&format!("valid-{plain}-{when}"), format!("{name}\n{fen}\n{moves}\n{more}")));
        }
        for (what, fen, moves) in [
            ("fields", "x", "a1"),
            ("number", "99999999999999999999/1/1 x 1 1 1", "a18446744073709551616 i9 pass off"),
            ("signs", "\u{1b}[2J/ä/𝕏 x - - 0 0", "\u{1b} ä1 a𝕏"),
        ] {
            seeds.push(seed(&format!("bad-{plain}-{what}"), format!("{name}\n{fen}\n{moves}\n")));
        }
    }
    seeds.push(seed("bad-game", "chess\nstartpos\ne2e4\n"));
    seeds.push(seed("bad-slashes", format!("uttt\n{} x -\n{}\n", "/".repeat(3000), "a1 ".repeat(500))));
    seeds
}

fn conversations() -> Vec<Seed> {
    let mut seeds = Vec::new();
    for name in NAMES.iter().copied().chain(SPECS) {
        let [_, (fen, moves), (end, _)] = dispatch(name, Halfway(6)).unwrap();
        let moves = moves.join(" ");
        let text = format!(
            "{name}\nugi\nisready\nuginewgame\nquery p1turn\ngo nodes 5\nposition fen {fen} moves {moves}\n\
             go movetime 3\nstop\ngo infinite\nquery gameover\nstop\ngo perft 1\nposition fen {end}\nquery result\n\
             position startpos\ngo p1time 1000 p2time 900 p1inc 10 p2inc 0\nquit\n"
        );
        seeds.push(seed(&format!("valid-{}", name.replace([':', '=', ','], "-")), text));
    }
    let options = "uttt\nsetoption name Simulations value 3\nsetoption name temperature value 0.5\n\
                   setoption name Threads value 1\nsetoption name Checkpoint value <empty>\ngo depth 2\ngo\n";
    let wrong = "zener\nugi now\nfly\nisready\nsetoption\nsetoption name\nsetoption name value\n\
                 setoption name Simulations value -1\nsetoption name Threads value 99999999999999999999\n\
                 setoption name Checkpoint value no/such@sims=x@policy\nsetoption name Checkpoint value engine:'\n\
                 setoption name Temperature value NaN\nposition\nposition fen\nposition fen x moves y\n\
                 position startpos moves a1a1 off\ngo nodes 0\ngo nodes 18446744073709551616\ngo movetime x\n\
                 go p1time -9223372036854775808 p2time 9223372036854775807 p1inc 9223372036854775807\n\
                 go infinite infinite\ngo perft\ngo perft 101\ngo depth 4294967295\nquery\nquery x\nstop stop\n";
    seeds.push(seed("piece-options", options));
    seeds.push(seed("bad-commands", wrong));
    seeds.push(seed("bad-game", "chess\nugi\n"));
    seeds.push(seed("bad-signs", b"uttt\n\xff\xfe\n\x1b[2J\n\0\ngo\rgo\x0bnodes\x0c3\nposition fen \x9b2J\n".to_vec()));
    seeds.push(seed("bad-long", format!("uttt\nposition startpos moves {}\n{}", "a1 ".repeat(2000), "x".repeat(9000))));
    seeds
}
