//! What is measured: a config, a game, or the built-in matrix.

use std::path::Path;

use crate::games::{self, GameNameError};
use crate::run::config::RunConfig;
use crate::run::strict::ConfigErrors;

/// The games whose network is measured where no target is given.
const WITH_NETWORK: [&str; 2] = ["uttt", "connect4"];

/// Their network: what figures of other programs are known for.
const NETWORK: &str = r#"network={"type": "resnet", "blocks": 6, "channels": 64}"#;

/// Something to be measured.
#[derive(Clone, Debug)]
pub struct Job {
    /// The game and everything around it.
    pub config: RunConfig,
    /// Whether the groups that need a network are measured too.
    pub network: bool,
}

/// The target is neither a config nor a game.
#[derive(Debug, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum TargetError {
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    #[error("{target:?} is no file, and {error}")]
    Neither { target: String, error: GameNameError },
}

/// What `target` stands for: a config file, a game with its options, or without one the built-in matrix of all games.
/// `sets` override keys (`network.blocks=3`), in the matrix those of every game.
///
/// # Errors
/// Everything that is wrong with the config; or that there is neither a file nor a game of that name.
pub fn jobs(target: Option<&str>, sets: &[String]) -> Result<Vec<Job>, TargetError> {
    let Some(target) = target else {
        let job = |name: &&str| {
            let network = WITH_NETWORK.contains(name);
            let fixed = network.then(|| NETWORK.to_owned());
            let sets: Vec<String> = fixed.into_iter().chain(sets.iter().cloned()).collect();
            Ok(Job { config: of_game(name, &sets)?, network })
        };
        return games::NAMES.iter().map(job).collect();
    };
    let path = Path::new(target);
    let config = if path.exists() || path.extension().is_some_and(|extension| extension == "json") {
        RunConfig::read(path, sets)?
    } else {
        let known =
            games::parse_spec(target).and_then(|(name, options)| games::dispatch_options(name, &options, Exists));
        known.map_err(|error| TargetError::Neither { target: target.to_owned(), error })?;
        of_game(target, sets)?
    };
    Ok(vec![Job { config, network: true }])
}

/// The config `{"game": NAME}`.
fn of_game(name: &str, sets: &[String]) -> Result<RunConfig, ConfigErrors> {
    let text = serde_json::json!({ "game": name }).to_string();
    RunConfig::parse(name, &text, sets)
}

struct Exists;

impl games::GameVisitor for Exists {
    type Output = ();

    fn visit<G: crate::game::Game>(self, _: G) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::{Architecture, Resnet};

    #[test]
    fn targets_are_files_games_or_everything() {
        let all = jobs(None, &[]).unwrap();
        assert_eq!(all.iter().map(|job| &job.config.game[..]).collect::<Vec<_>>(), games::NAMES);
        for job in &all {
            assert_eq!(job.network, ["uttt", "connect4"].contains(&&job.config.game[..]));
            if job.network {
                let large = Resnet { blocks: 6, channels: 64, ..Resnet::default() };
                assert_eq!(job.config.network, Architecture::Resnet(large));
            }
        }
        let [job] = &jobs(Some("othello:size=6"), &["training.batch_size=32".to_owned()]).unwrap()[..] else {
            panic!()
        };
        assert!(job.network && job.config.game == "othello:size=6" && job.config.training.batch_size == 32);

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("uttt");
        std::fs::write(&file, r#"{"game": "tictactoe"}"#).unwrap();
        let [job] = &jobs(file.to_str(), &[]).unwrap()[..] else { panic!() };
        assert_eq!(job.config.game, "tictactoe", "what is there as a file is the file");
    }

    #[test]
    fn what_is_neither_is_explained() {
        let fault = |target, sets: &[String]| jobs(Some(target), sets).unwrap_err().to_string();
        assert!(fault("utt", &[]).contains("did you mean \"uttt\""), "{}", fault("utt", &[]));
        assert!(fault("othello:size=7", &[]).contains("4, 6, 8 or 10"));
        assert!(fault("no/such.json", &[]).contains("no/such.json"));
        assert!(fault("uttt", &["search.c_pukt=1".to_owned()]).contains("c_puct"));
    }
}
