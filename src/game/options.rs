//! Reading the options of a game.

use super::{OptionInfo, TextError};

/// The value of each option of `infos`, in that order: the one given in `options` (name, value), else the
/// default. For the use of [`from_options`](super::Game::from_options).
///
/// # Errors
/// Names an option that is not in `infos`, or that is given twice.
pub fn option_values<'o>(
    game: &str,
    infos: &'o [OptionInfo],
    options: &'o [(String, String)],
) -> Result<Vec<&'o str>, TextError> {
    for (index, (name, _)) in options.iter().enumerate() {
        if !infos.iter().any(|info| info.name == name) {
            let known: Vec<&str> = infos.iter().map(|info| info.name).collect();
            let known =
                if known.is_empty() { "it has none".to_owned() } else { format!("it has: {}", known.join(", ")) };
            return Err(TextError::new(format!("{game} has no option {name:?}; {known}")));
        }
        if options[..index].iter().any(|(earlier, _)| earlier == name) {
            return Err(TextError::new(format!("option {name:?} of {game} is given twice")));
        }
    }
    let value = |info: &'o OptionInfo| {
        options.iter().find(|(name, _)| name == info.name).map_or(info.default, |(_, value)| value.as_str())
    };
    Ok(infos.iter().map(value).collect())
}

/// The error for a value that is not allowed.
pub fn bad_value(game: &str, info: &OptionInfo, value: &str) -> TextError {
    TextError::new(format!("option {:?} of {game} is {value:?}, allowed: {}", info.name, info.allowed))
}
