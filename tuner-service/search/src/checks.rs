//! Checks of settings.

/// The largest design. The limit keeps starts fast, because the design is computed for each
/// suggestion.
pub const MAX_DESIGN_POINTS: u32 = 256;

/// A setting that cannot be used.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("{setting} is {value}: it must be {allowed}")]
pub struct SettingsError {
    /// The setting's path.
    pub setting: &'static str,
    /// The given value.
    pub value: String,
    /// The allowed values, in words.
    pub allowed: String,
}

/// Checks that a whole number is from `min` to `max`.
pub fn whole(setting: &'static str, value: u32, min: u32, max: u32) -> Result<(), SettingsError> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    Err(SettingsError {
        setting,
        value: value.to_string(),
        allowed: format!("from {min} to {max}"),
    })
}

/// Checks that a number is above 0 and at most `max`; `unit` completes the message.
pub fn positive(
    setting: &'static str,
    value: f64,
    max: f64,
    unit: &str,
) -> Result<(), SettingsError> {
    if value > 0.0 && value <= max {
        return Ok(());
    }
    Err(SettingsError {
        setting,
        value: value.to_string(),
        allowed: format!("above 0 and at most {max}{unit}"),
    })
}

/// Checks that a number is from 0 to 1, both included.
pub fn probability(setting: &'static str, value: f64) -> Result<(), SettingsError> {
    if (0.0..=1.0).contains(&value) {
        return Ok(());
    }
    Err(SettingsError {
        setting,
        value: value.to_string(),
        allowed: "from 0 to 1".to_owned(),
    })
}
