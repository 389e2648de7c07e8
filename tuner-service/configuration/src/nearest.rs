//! The known word that an unknown one may be meant as.

/// As alike as clap wants it for its own suggestions.
const ALIKE: f64 = 0.7;

/// The known word that is most like an unknown one, for the question whether it is meant.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let alike = known
        .into_iter()
        .map(|known| (strsim::jaro(word, known), known));
    alike
        .filter(|(alike, _)| *alike > ALIKE)
        .max_by(|(one, _), (other, _)| one.total_cmp(other))
        .map(|(_, known)| known)
}

/// The known word that a word is but for a letter or two; none if the word is itself known. So
/// little is a slip even where words of one's own are allowed.
pub fn misspelt<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let small = word.to_lowercase();
    let is_near = |known: &&&str| {
        let most = if known.len() > 5 { 2 } else { 1 };
        strsim::osa_distance(&small, known) <= most
    };
    let is_known = known.contains(&word);
    (!is_known).then(|| known.iter().find(is_near).copied())?
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
        assert_eq!(nearest("default_measures", known), Some("default"));
        for word in ["default_measures", "values", "note"] {
            assert_eq!(misspelt(word, &known), None);
        }
    }
}
