//! The games, and the one registry that turns a name into a type.
//!
//! To add a game, write its file, declare it below and add one line to the registry. Tests and
//! commands go through the registry and cover it from then on.

use crate::game::{Game, OptionInfo, TextError};

pub mod connect4;
pub mod othello;
pub mod tictactoe;
pub mod uttt;
pub mod zener;

/// Options of a game as text: name and value of each.
pub type OptionTexts = Vec<(String, String)>;

/// Something to do with a game whose type is only known by name at run time.
pub trait GameVisitor {
    /// What comes out.
    type Output;

    /// Does it.
    fn visit<G: Game>(self, game: G) -> Self::Output;
}

/// Writes [`NAMES`] and [`dispatch_options`] from the list of games.
macro_rules! registry {
    ($($game:ty),* $(,)?) => {
        /// The names of all games.
        pub const NAMES: &[&str] = &[$(<$game>::NAME),*];

        /// Hands the game called `name` with `options` (name, value) to `visitor`.
        ///
        /// # Errors
        /// When there is no such game or option, or a value is not allowed.
        pub fn dispatch_options<V: GameVisitor>(
            name: &str,
            options: &[(String, String)],
            visitor: V,
        ) -> Result<V::Output, GameNameError> {
            match name {
                $(<$game>::NAME => Ok(visitor.visit(build::<$game>(options)?)),)*
                _ => Err(GameNameError::unknown_game(name)),
            }
        }
    };
}

registry! {
    tictactoe::TicTacToe,
    connect4::ConnectFour,
    othello::Othello,
    uttt::Uttt,
    zener::Zener,
}

/// Hands the game that `spec` names to `visitor`: `NAME`, or `NAME:OPTION=VALUE,OPTION=VALUE`.
///
/// # Errors
/// When the text is malformed, there is no such game or option, or a value is not allowed.
pub fn dispatch<V: GameVisitor>(spec: &str, visitor: V) -> Result<V::Output, GameNameError> {
    let (name, options) = parse_spec(spec)?;
    dispatch_options(name, &options, visitor)
}

/// The names of the games that bring a solver.
pub fn solved_names() -> Vec<&'static str> {
    struct HasSolver;
    impl GameVisitor for HasSolver {
        type Output = bool;
        fn visit<G: Game>(self, game: G) -> bool {
            game.solver().is_some()
        }
    }
    NAMES.iter().copied().filter(|name| dispatch_options(name, &[], HasSolver) == Ok(true)).collect()
}

/// Splits `NAME:OPTION=VALUE,...` into the name and the options, without looking at what they mean.
///
/// # Errors
/// When a part behind the colon is not of the form `OPTION=VALUE`.
pub fn parse_spec(spec: &str) -> Result<(&str, OptionTexts), GameNameError> {
    let Some((name, rest)) = spec.split_once(':') else {
        return Ok((spec, Vec::new()));
    };
    let option = |part: &str| match part.split_once('=') {
        Some((option, value)) if !option.is_empty() && !value.is_empty() => Ok((option.to_owned(), value.to_owned())),
        _ => Err(GameNameError::Malformed { spec: spec.to_owned(), part: part.to_owned() }),
    };
    Ok((name, rest.split(',').map(option).collect::<Result<_, _>>()?))
}

/// A text that names no game with its options.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GameNameError {
    /// There is no game of this name.
    #[error("there is no game {name:?}{}; the games are {}", did_you_mean(.nearest), NAMES.join(", "))]
    UnknownGame {
        /// What was asked for.
        name: String,
        /// The nearest name, when one is near.
        nearest: Option<&'static str>,
    },
    /// An option is not written as it should be.
    #[error("in {spec:?}: {part:?} is no option, expected NAME:OPTION=VALUE,OPTION=VALUE")]
    Malformed {
        /// The whole text.
        spec: String,
        /// The part that is wrong.
        part: String,
    },
    /// The game has no option of this name.
    #[error("{game} has no option {option:?}{}; {}", did_you_mean(.nearest), list_options(.known))]
    UnknownOption {
        /// The game's name.
        game: &'static str,
        /// What was asked for.
        option: String,
        /// The nearest option, when one is near.
        nearest: Option<&'static str>,
        /// The game's options.
        known: &'static [OptionInfo],
    },
    /// A value is not allowed, or an option is given twice.
    #[error(transparent)]
    BadOption(#[from] TextError),
}

impl GameNameError {
    fn unknown_game(name: &str) -> Self {
        Self::UnknownGame { name: name.to_owned(), nearest: nearest(name, NAMES.iter().copied()) }
    }
}

fn build<G: Game>(options: &[(String, String)]) -> Result<G, GameNameError> {
    let known = G::option_infos();
    for (option, _) in options {
        if !known.iter().any(|info| info.name == option) {
            return Err(GameNameError::UnknownOption {
                game: G::NAME,
                option: option.clone(),
                nearest: nearest(option, known.iter().map(|info| info.name)),
                known,
            });
        }
    }
    Ok(G::from_options(options)?)
}

/// The one of `known` that `name` was most likely meant to be, if any is near enough.
fn nearest(name: &str, known: impl Iterator<Item = &'static str>) -> Option<&'static str> {
    known
        .map(|candidate| (strsim::normalized_damerau_levenshtein(&name.to_lowercase(), candidate), candidate))
        .filter(|&(likeness, _)| likeness >= 0.5)
        .max_by(|a, b| a.0.total_cmp(&b.0))
        .map(|(_, candidate)| candidate)
}

fn did_you_mean(nearest: &Option<&'static str>) -> String {
    nearest.map_or(String::new(), |name| format!(" (did you mean {name:?}?)"))
}

fn list_options(known: &[OptionInfo]) -> String {
    if known.is_empty() {
        return "it has none".to_owned();
    }
    let each = known.iter().map(|info| format!("{} ({})", info.name, info.allowed));
    format!("it has {}", each.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::game::{full_name, without_colors};
    use crate::util::rng::Stream;

    struct FullName;

    impl GameVisitor for FullName {
        type Output = String;

        fn visit<G: Game>(self, game: G) -> String {
            full_name(&game)
        }
    }

    #[test]
    fn names_and_options_reach_their_game() {
        for &name in NAMES {
            assert_eq!(dispatch(name, FullName).unwrap(), name);
        }
        assert_eq!(dispatch("othello:size=6", FullName).unwrap(), "othello:size=6");
        assert_eq!(dispatch("othello:size=8", FullName).unwrap(), "othello");
    }

    struct Drawings;

    impl GameVisitor for Drawings {
        type Output = ();

        /// Leaves room for a prompt and what was said last in a terminal of 80 columns and 24 rows.
        fn visit<G: Game>(self, game: G) {
            let mut marked = 0;
            for seed in 0..20 {
                let mut random = Stream::test(seed);
                let (mut state, mut last) = (game.start(&mut random), None);
                loop {
                    let drawing = game.paint(&state, last);
                    let plain = drawing.to_string();
                    let place = || format!("{}\n{plain}", game.state_text(&state));
                    assert!(plain.lines().all(|line| line.chars().count() <= 80), "{}", place());
                    assert!(plain.lines().count() <= 15 && plain.ends_with('\n'), "{}", place());
                    assert!(plain.lines().all(|line| line.trim_end() == line), "{}", place());
                    assert_eq!(without_colors(&drawing.colored()), plain);
                    assert!(drawing.colored().len() > plain.len(), "{}", place());
                    assert_eq!(game.draw(&state), game.paint(&state, None).to_string());
                    marked += usize::from(plain != game.draw(&state));
                    if game.end(&state).is_some() {
                        break;
                    }
                    last = Some(game.random_action(&state, &mut random, &mut Vec::new()));
                    game.play(&mut state, last.expect("it is there"));
                }
            }
            assert!(marked > 20, "{}: the last move is marked", G::NAME);
        }
    }

    #[test]
    fn drawings_fit_a_terminal_and_say_the_same_without_colours() {
        for &name in NAMES {
            dispatch(name, Drawings).unwrap();
        }
        dispatch("othello:size=10", Drawings).unwrap();
    }

    #[test]
    fn errors_say_what_is_wrong_and_what_there_is() {
        let games = NAMES.join(", ");
        for (spec, error) in [
            ("utt", format!("there is no game \"utt\" (did you mean \"uttt\"?); the games are {games}")),
            ("Othelo", format!("there is no game \"Othelo\" (did you mean \"othello\"?); the games are {games}")),
            ("chess", format!("there is no game \"chess\"; the games are {games}")),
            ("", format!("there is no game \"\"; the games are {games}")),
            ("uttt:", "in \"uttt:\": \"\" is no option, expected NAME:OPTION=VALUE,OPTION=VALUE".to_owned()),
            (
                "uttt:size=",
                "in \"uttt:size=\": \"size=\" is no option, expected NAME:OPTION=VALUE,OPTION=VALUE".to_owned(),
            ),
            ("uttt:size=3", "uttt has no option \"size\"; it has none".to_owned()),
            (
                "othello:sise=6",
                "othello has no option \"sise\" (did you mean \"size\"?); it has size (4, 6, 8 or 10)".to_owned(),
            ),
            ("othello:size=7", "option \"size\" of othello is \"7\", allowed: 4, 6, 8 or 10".to_owned()),
            ("othello:size=6,size=6", "option \"size\" of othello is given twice".to_owned()),
        ] {
            assert_eq!(dispatch(spec, FullName).unwrap_err().to_string(), error, "{spec}");
        }
    }
}
