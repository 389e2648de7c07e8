//! The known word that may be meant by an unknown one.

/// The similarity from which on a word is suggested, the same as clap's for its own suggestions.
const ALIKE: f64 = 0.7;

/// The known word that is most like an unknown one, to ask whether it is meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let known: Vec<&str> = known.into_iter().collect();
    let alike = known
        .iter()
        .map(|known| (strsim::jaro(word, known), *known));
    let most_alike = alike
        .filter(|(alike, _)| *alike > ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other));
    misspelt(word, &known).or_else(|| most_alike.map(|(_, known)| known))
}

/// The known word from which a word differs by a letter or two; none if the word is known itself.
/// Such a small difference is taken for a slip even where users may choose words of their own.
pub fn misspelt<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    if known.contains(&word) {
        return None;
    }
    let small = word.to_lowercase();
    let near = known.iter().filter_map(|known| {
        let most = if known.len() > 5 { 2 } else { 1 };
        let distance = strsim::osa_distance(&small, known);
        (distance <= most).then_some((distance, *known))
    });
    near.min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

/// serde's message, followed by the nearest word if one is unknown.
#[must_use]
pub fn explained(message: &str) -> String {
    match meant(message) {
        Some(nearest) => format!("{message}; did you mean `{nearest}`?"),
        None => message.to_owned(),
    }
}

/// The nearest word in serde's "unknown field `x`, expected one of `a`, `b`", or variant.
pub(crate) fn meant(message: &str) -> Option<&str> {
    let (_, rest) = ["unknown field `", "unknown variant `"]
        .iter()
        .find_map(|start| message.split_once(start))?;
    let (unknown, known) = rest.rsplit_once("`, expected ")?;
    // Every second piece is between two backticks.
    nearest(unknown, known.split('`').skip(1).step_by(2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_nearer_than_a_suggestion() {
        let known = ["name", "values", "default"];
        assert_eq!(nearest("valeus", known), Some("values"));
        assert_eq!(misspelt("valeus", &known), Some("values"));
        assert_eq!(misspelt("Values", &known), Some("values"));
        for (word, meant) in [("aks", "ask"), ("buy", "by"), ("lest", "left")] {
            assert_eq!(nearest(word, ["by", "ask", "left", "least"]), Some(meant));
        }
        assert_eq!(nearest("zzz", known), None);
        assert_eq!(nearest("default_measures", known), Some("default"));
        for word in ["default_measures", "values", "note"] {
            assert_eq!(misspelt(word, &known), None);
        }
    }
}
