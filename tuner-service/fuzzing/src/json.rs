//! Mutates values of JSON documents, also of JSON lines.

use rand::RngExt;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use crate::words::WORDS;

/// Changes one to three values; `None`: not JSON.
pub(crate) fn changed(rng: &mut ChaCha8Rng, text: &[u8]) -> Option<Vec<u8>> {
    if let Ok(document) = serde_json::from_slice::<Value>(text) {
        return Some(change(rng, document));
    }
    let mut lines: Vec<Vec<u8>> = text
        .split(|byte| *byte == b'\n')
        .map(<[u8]>::to_vec)
        .collect();
    let place = rng.random_range(0..lines.len());
    let document = serde_json::from_slice::<Value>(&lines[place]).ok()?;
    lines[place] = change(rng, document);
    Some(lines.join(&b'\n'))
}

fn change(rng: &mut ChaCha8Rng, mut document: Value) -> Vec<u8> {
    for _ in 0..rng.random_range(1..=3) {
        let places = count(&document);
        let mut place = rng.random_range(0..places);
        visit(&mut document, &mut place, &mut |value| alter(rng, value));
    }
    let mut text = document.to_string();
    // What a `Value` cannot hold: overflowing numbers, duplicate keys, endless nesting.
    match rng.random_range(0..12) {
        0 => text = text.replacen(|c: char| c.is_ascii_digit(), "1e999", 1),
        1 => {
            if let Some(inner) = text
                .strip_prefix('{')
                .and_then(|text| text.strip_suffix('}'))
            {
                text = format!("{{{inner},{inner}}}");
            }
        }
        2 => {
            text = text.replacen(
                "null",
                &format!("{}{}", "[".repeat(2000), "]".repeat(2000)),
                1,
            )
        }
        _ => {}
    }
    text.into_bytes()
}

fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(fields) => fields.values().map(count).sum(),
        _ => 0,
    }
}

/// Applies `what` to the value at a place, counted as by [`count`].
fn visit(value: &mut Value, place: &mut usize, what: &mut impl FnMut(&mut Value)) -> bool {
    if *place == 0 {
        what(value);
        return true;
    }
    *place -= 1;
    match value {
        Value::Array(items) => items.iter_mut().any(|item| visit(item, place, what)),
        Value::Object(fields) => fields.values_mut().any(|field| visit(field, place, what)),
        _ => false,
    }
}

fn alter(rng: &mut ChaCha8Rng, value: &mut Value) {
    let word = String::from_utf8_lossy(WORDS[rng.random_range(0..WORDS.len())]).into_owned();
    match (rng.random_range(0..10), &mut *value) {
        (0..3, Value::String(text)) => {
            let mut place = rng.random_range(0..=text.len());
            while !text.is_char_boundary(place) {
                place -= 1;
            }
            text.insert_str(place, &word);
        }
        (0..3, Value::Array(items)) if !items.is_empty() => {
            let item = items[rng.random_range(0..items.len())].clone();
            items.extend(std::iter::repeat_n(item, 1 << rng.random_range(0..8)));
        }
        (0..2, Value::Object(fields)) if !fields.is_empty() => {
            let names: Vec<String> = fields.keys().cloned().collect();
            let name = &names[rng.random_range(0..names.len())];
            let field = fields.remove(name).unwrap_or_default();
            if rng.random_range(0..2) == 0 {
                fields.insert(format!("{name}{word}"), field);
            }
        }
        (2, Value::Object(fields)) => {
            fields.insert(word, json!(1));
        }
        _ => {
            *value = match rng.random_range(0..14) {
                0 => Value::Null,
                1 => json!(true),
                2 => json!(0),
                3 => json!(-1),
                4 => json!(u32::MAX),
                5 => json!(u64::MAX),
                6 => json!(i64::MIN),
                7 => json!(1e308),
                8 => json!(0.5),
                9 => json!(""),
                10 => json!(word),
                11 => json!("x".repeat(1 << rng.random_range(0..14))),
                12 => json!([]),
                _ => json!({}),
            }
        }
    }
}
