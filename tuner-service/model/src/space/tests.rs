use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::*;
use crate::testing::{any_constrained, categories, grid, huge, integers, storage};

const ROMIO: &str = r#"[
    {"name": "cb_nodes", "kind": "integer", "min": 1, "max": 8, "default": 1},
    {"name": "cb_buffer_size", "kind": "ordered", "unit": "bytes",
     "values": [4194304, 16777216, 67108864], "default": 16777216},
    {"name": "romio_cb_write", "kind": "categories", "description": "collective buffering",
     "values": ["enable", "disable", "automatic"], "default": "automatic"},
    {"name": "striping", "kind": "integer", "min": 2, "max": 13, "step": 2, "default": 4}
]"#;

fn romio() -> Space {
    serde_json::from_str(ROMIO).unwrap()
}

fn refusal(json: &str) -> String {
    serde_json::from_str::<Space>(json).unwrap_err().to_string()
}

#[test]
fn the_flat_form_is_read_and_written() {
    let space = romio();
    assert_eq!(space.size(), 8 * 3 * 3 * 6);
    let json = serde_json::to_string(&space).unwrap();
    assert_eq!(serde_json::from_str::<Space>(&json).unwrap(), space);
    assert!(
        json.contains(
            r#"{"name":"cb_nodes","kind":"integer","min":1,"max":8,"step":1,"default":1}"#
        )
    );
    assert_eq!(
        space.default().to_string(),
        "cb_buffer_size=16777216 cb_nodes=1 romio_cb_write=automatic striping=4"
    );
    assert_eq!(space.default_point(), Point(vec![0, 1, 2, 1]));
}

#[test]
fn what_is_wrong_is_named() {
    for (json, words) in [
        ("[]", "at least one parameter"),
        (
            r#"[{"name": "a b", "kind": "integer", "min": 1, "max": 2, "default": 1}]"#,
            "\"a b\" is not valid",
        ),
        (
            r#"[{"name": "", "kind": "integer", "min": 1, "max": 2, "default": 1}]"#,
            "1 to 128",
        ),
        (
            r#"[{"name": "a", "kind": "integer", "min": 3, "max": 2, "default": 3}]"#,
            "min 3 is above max 2",
        ),
        (
            r#"[{"name": "a", "kind": "integer", "min": 1, "max": 2, "step": 0, "default": 1}]"#,
            "step 0",
        ),
        (
            r#"[{"name": "a", "kind": "integer", "min": 1, "max": 9, "step": 2, "default": 2}]"#,
            "from 1 to 9 in steps of 2",
        ),
        (
            r#"[{"name": "a", "kind": "integer", "max": 9, "default": 2}]"#,
            "needs min",
        ),
        (
            r#"[{"name": "a", "kind": "integer", "min": 1, "max": 9, "values": [1], "default": 2}]"#,
            "has no values",
        ),
        (
            r#"[{"name": "a", "kind": "ordered", "default": 2}]"#,
            "needs values",
        ),
        (
            r#"[{"name": "a", "kind": "ordered", "values": [], "default": 2}]"#,
            "no values",
        ),
        (
            r#"[{"name": "a", "kind": "ordered", "values": [1, 1.0], "default": 1}]"#,
            "listed twice",
        ),
        (
            r#"[{"name": "a", "kind": "categories", "values": ["x\ny"], "default": "x\ny"}]"#,
            r#""x\ny" is not allowed"#,
        ),
        (
            r#"[{"name": "a", "kind": "categories", "values": ["x"], "step": 1, "default": "x"}]"#,
            "has no step",
        ),
        (
            r#"[{"name": "a", "kind": "categories", "values": ["x", "y"], "default": "z"}]"#,
            "one of x, y",
        ),
        (
            r#"[{"name": "a", "kind": "categories", "values": ["x"], "default": "x", "uint": "s"}]"#,
            "unknown field `uint`",
        ),
        (
            r#"[{"name": "a", "kind": "set", "values": ["x"], "default": "x"}]"#,
            "unknown variant `set`",
        ),
        (
            r#"[{"name": "a", "kind": "integer", "min": 0, "max": 9223372036854775807, "default": 0}]"#,
            "larger step",
        ),
        (
            r#"[{"name": "a", "kind": "integer", "min": -9223372036854775808, "max": 9223372036854775807, "default": 0}]"#,
            "larger step",
        ),
    ] {
        let message = refusal(json);
        assert!(message.contains(words), "{json}: {message}");
    }
    let twice = vec![integers("a", 0, 1, 1), integers("a", 0, 2, 1)];
    assert_eq!(
        Space::new(twice).unwrap_err().to_string(),
        "parameter a is given twice: rename or remove one of them"
    );
    let many = (0..21).map(|n| integers(&format!("p{n}"), 0, 1, 1));
    assert!(matches!(
        Space::new(many.collect()),
        Err(SpaceError::TooManyParameters { count: 21, max: 20 })
    ));
    let nan = Parameter {
        domain: Domain::Ordered {
            values: vec![Value::Real(f64::NAN)],
        },
        default: Value::Real(f64::NAN),
        ..integers("a", 0, 1, 1)
    };
    assert!(matches!(
        Space::new(vec![nan]),
        Err(SpaceError::BadValue { .. })
    ));
}

#[test]
fn the_whole_range_of_i64_is_a_range() {
    let space = Space::new(vec![integers("a", i64::MIN, i64::MAX, 1 << 40)]).unwrap();
    assert_eq!(space.size(), 1 << 24);
    let parameter = &space.parameters()[0];
    let last = parameter.value_at(parameter.levels() - 1).unwrap();
    assert_eq!(last, Value::Integer(i64::MAX - ((1 << 40) - 1)));
    assert_eq!(parameter.level_of(&last), Some(parameter.levels() - 1));
    assert_eq!(parameter.value_at(parameter.levels()), None);
    assert_eq!(parameter.level_of(&Value::Integer(i64::MAX)), None);
    assert_eq!(parameter.level_of(&Value::Real(1e300)), None);
}

#[test]
fn parametrizations_are_validated_and_completed() {
    let space = romio();
    let partial = BTreeMap::from([("cb_nodes".to_owned(), Value::Real(3.0))]);
    let complete = space.complete(&partial).unwrap();
    assert_eq!(
        complete.key(),
        r#"{"cb_buffer_size":16777216,"cb_nodes":3,"romio_cb_write":"automatic","striping":4}"#
    );
    assert!(matches!(complete.0["cb_nodes"], Value::Integer(3)));
    assert_eq!(space.validate(&complete), Ok(Point(vec![2, 1, 2, 1])));
    assert_eq!(
        space
            .validate(&Parametrization(partial))
            .unwrap_err()
            .to_string(),
        "parameter cb_buffer_size has no value: it must be one of 4194304, 16777216, 67108864"
    );
    let wrong = BTreeMap::from([("cb_nodes".to_owned(), Value::Integer(9))]);
    assert_eq!(
        space.complete(&wrong).unwrap_err().to_string(),
        "parameter cb_nodes cannot be \"9\": it must be an integer from 1 to 8"
    );
    let unknown = BTreeMap::from([("cb_node\n".to_owned(), Value::Integer(1))]);
    assert_eq!(
        space.complete(&unknown).unwrap_err().to_string(),
        "there is no parameter \"cb_node\\n\": the parameters are cb_nodes, cb_buffer_size, \
         romio_cb_write, striping"
    );
}

#[test]
fn texts_are_read_as_the_parameter_has_them() {
    let digits = Parameter {
        domain: Domain::Categories {
            values: vec![Value::from("1"), Value::from("one"), Value::Real(0.5)],
        },
        default: Value::from("one"),
        ..integers("digits", 0, 1, 1)
    };
    let space = Space::new(vec![digits, integers("size", 0, 100, 10)]).unwrap();
    assert_eq!(space.parse_value("digits", "1"), Ok(Value::from("1")));
    assert_eq!(space.parse_value("digits", "0.50"), Ok(Value::Real(0.5)));
    assert_eq!(space.parse_value("size", "20"), Ok(Value::Integer(20)));
    assert_eq!(space.parse_value("size", "2e1"), Ok(Value::Integer(20)));
    for text in ["21", "", "inf", "NaN", "-10", "99999999999999999999"] {
        let error = space.parse_value("size", text).unwrap_err();
        assert!(error.to_string().contains("in steps of 10"), "{error}");
    }
    assert!(matches!(
        space.parse_value("sizes", "20"),
        Err(SpaceError::UnknownParameter { .. })
    ));
}

#[test]
fn messages_stay_short() {
    let long = "x".repeat(100_000);
    let error = romio().parse_value("cb_nodes", &long).unwrap_err();
    assert!(error.to_string().len() < 200, "{error}");
    let wide = Space::new(vec![categories("c", 1000)]).unwrap();
    let choices = wide.parameters()[0].choices();
    assert!(choices.ends_with("(1000 in all)"), "{choices}");
}

#[test]
fn distances_by_hand() {
    let space = Space::new(vec![
        integers("a", 0, 40, 10),
        categories("b", 5),
        integers("c", 7, 7, 1),
    ])
    .unwrap();
    let distance = |a: [u32; 3], b: [u32; 3]| space.distance(&Point(a.into()), &Point(b.into()));
    assert_eq!(distance([1, 2, 0], [1, 2, 0]), 0.0);
    // One quarter of the range of a, and another category.
    let expected = ((0.25_f64 * 0.25 + 1.0) / 3.0).sqrt();
    assert!((distance([1, 0, 0], [2, 4, 0]) - expected).abs() < 1e-15);
    assert_eq!(
        distance([1, 0, 0], [2, 1, 0]),
        distance([1, 0, 0], [2, 4, 0])
    );
}

#[test]
fn a_point_with_levels_that_do_not_exist_is_not_admitted() {
    let space = grid(&[2, 3]);
    assert!(space.admits(&Point(vec![1, 2])));
    for point in [vec![2, 0], vec![0, 3], vec![0], vec![0, 0, 0]] {
        assert!(!space.admits(&Point(point)));
    }
}

#[test]
fn a_huge_space_has_a_size() {
    assert_eq!(grid(&[1000; 12]).size(), 1000_u128.pow(12));
    assert_eq!(grid(&[1000; 20]).size(), u128::MAX);
}

proptest! {
    #[test]
    fn points_and_parametrizations_are_one(
        levels in prop::collection::vec(1_u32..50, 1..8),
        draws in prop::collection::vec(any::<u32>(), 8),
    ) {
        let space = grid(&levels);
        let point = Point(levels.iter().zip(&draws).map(|(levels, draw)| draw % levels).collect());
        let parametrization = space.parametrization(&point);
        prop_assert_eq!(space.validate(&parametrization), Ok(point));
        let json = serde_json::to_string(&parametrization).unwrap();
        prop_assert_eq!(serde_json::from_str::<Parametrization>(&json).unwrap(), parametrization);
    }

    #[test]
    fn any_text_is_answered(name in ".{0,10}", text in ".{0,40}") {
        let space = romio();
        if let Ok(value) = space.parse_value(&name, &text) {
            prop_assert!(space.complete(&BTreeMap::from([(name, value)])).is_ok());
        }
        let _ = space.parse_value("cb_nodes", &text);
    }

    #[test]
    fn equal_values_have_equal_keys(a in -3_i64..3, b in -3.0_f64..3.0) {
        let (integer, whole, real) = (Value::Integer(a), Value::Real(a as f64), Value::Real(b));
        prop_assert_eq!(integer.key(), whole.key());
        prop_assert_eq!(integer == real, integer.key() == real.key());
        prop_assert_eq!(integer.cmp(&real), (a as f64).partial_cmp(&b).unwrap());
    }
}

/// Returns true if every level exists and all constraints hold, judged by the parametrization
/// alone.
fn is_sound(space: &Space, point: &Point) -> bool {
    space.validate(&space.parametrization(point)) == Ok(point.clone())
}

#[test]
fn what_does_not_exist_is_absent() {
    let space = storage();
    assert_eq!(
        space.default().to_string(),
        "aggregators=2 cache=off nodes=4"
    );
    let some = |json: &str| {
        let values: BTreeMap<String, Value> = serde_json::from_str(json).unwrap();
        space.complete(&values)
    };
    let on = some(r#"{"cache": "on"}"#).unwrap();
    assert_eq!(on.to_string(), "aggregators=2 buffer=1M cache=on nodes=4");
    let deep = some(r#"{"cache": "auto", "buffer": "16M", "aggregators": 1}"#).unwrap();
    assert_eq!(
        deep.to_string(),
        "aggregators=1 buffer=16M cache=auto flush=0 nodes=4"
    );
    let point = space.validate(&deep).unwrap();
    assert_eq!(space.parametrization(&point), deep);
    // The levels of parameters that do not exist make no difference: this is one point.
    let off = space.canonical(Point(vec![3, 1, 0, 2, 3]));
    assert_eq!(off, space.default_point());
    for (json, words) in [
        (
            r#"{"buffer": "64K"}"#,
            "parameter buffer does not exist here, only where cache is on or auto: leave it out",
        ),
        (
            r#"{"cache": "on", "flush": 1}"#,
            "only where buffer is 16M and cache is on or auto",
        ),
        (r#"{"aggregators": 5}"#, r#""aggregators=5 nodes=4""#),
        (
            r#"{"aggregators": 5}"#,
            r#""aggregators <= nodes" must hold"#,
        ),
        (
            r#"{"nodes": 7, "cache": "auto"}"#,
            r#""not cache=auto with nodes=7|8" must hold"#,
        ),
        (
            r#"{"cache": "on", "buffer": "16M", "flush": 2}"#,
            "flush != aggregators",
        ),
    ] {
        let message = some(json).unwrap_err().to_string();
        assert!(message.contains(words), "{json}: {message}");
    }
    let mut surplus = space.default();
    surplus.0.insert("buffer".to_owned(), Value::from("1M"));
    assert!(matches!(
        space.validate(&surplus),
        Err(SpaceError::DoesNotExist { .. })
    ));
    let mut short = on;
    short.0.remove("buffer");
    assert!(matches!(
        space.validate(&short),
        Err(SpaceError::MissingValue { .. })
    ));
}

#[test]
fn what_exists_at_one_point_only_is_far() {
    let space = storage();
    let distance = |a: [u32; 5], b: [u32; 5]| space.distance(&Point(a.into()), &Point(b.into()));
    // The two points differ in the cache, and in the buffer that exists at one of them only.
    let expected = (2.0_f64 / 5.0).sqrt();
    assert!((distance([3, 1, 0, 1, 0], [3, 1, 1, 1, 0]) - expected).abs() < 1e-15);
    // Both points have a buffer, half of its range apart; a flush exists at one of them only.
    let expected = (1.25_f64 / 5.0).sqrt();
    assert!((distance([3, 1, 1, 1, 0], [3, 1, 1, 2, 0]) - expected).abs() < 1e-15);
    assert_eq!(distance([3, 1, 0, 1, 0], [3, 1, 0, 1, 0]), 0.0);
}

#[test]
fn the_stored_form_is_the_plain_list_without_constraints() {
    let plain = serde_json::to_string(&romio()).unwrap();
    assert!(plain.starts_with('[') && !plain.contains("when"), "{plain}");
    let constrained = serde_json::to_value(storage()).unwrap();
    assert_eq!(
        constrained["constraints"][0],
        serde_json::json!({"left": "aggregators", "op": "<=", "right": "nodes"})
    );
    assert_eq!(
        constrained["parameters"][3]["when"],
        serde_json::json!({"parameter": "cache", "is": ["on", "auto"]})
    );
    assert_eq!(
        serde_json::from_value::<Space>(constrained).unwrap(),
        storage()
    );
    let conditions = Space::new(storage().parameters().to_vec()).unwrap();
    let json = serde_json::to_string(&conditions).unwrap();
    assert!(json.starts_with('['), "{json}");
    assert_eq!(serde_json::from_str::<Space>(&json).unwrap(), conditions);
}

#[test]
fn what_is_wrong_with_conditions_and_constraints_is_named() {
    let with = |when: &str, constraint: &str| {
        refusal(&format!(
            r#"{{"parameters": [
            {{"name": "n", "kind": "integer", "min": 1, "max": 4, "default": 2}},
            {{"name": "c", "kind": "categories", "values": ["x", "y"], "default": "x", {when}
             "description": ""}},
            {{"name": "o", "kind": "ordered", "values": ["low", "high"], "default": "low"}}],
            "constraints": [{constraint}]}}"#
        ))
    };
    for (when, words) in [
        (
            r#""when": {"parameter": "o", "is": ["low"]},"#,
            "\"o\", which is not listed before it",
        ),
        (
            r#""when": {"parameter": "c", "is": ["x"]},"#,
            "one of those that are (n)",
        ),
        (r#""when": {"parameter": "n", "is": []},"#, "lists no value"),
        (
            r#""when": {"parameter": "n", "is": [9]},"#,
            "can never hold: parameter n cannot be",
        ),
        (
            r#""when": {"parameter": "n", "in": [9]},"#,
            "unknown field `in`",
        ),
    ] {
        let message = with(when, "");
        assert!(message.contains(words), "{when}: {message}");
    }
    for (constraint, words) in [
        (
            r#"{"left": "n", "op": "<="}"#,
            "needs left, op and right, or forbid alone",
        ),
        (
            r#"{"left": "n", "op": "=<", "right": 1}"#,
            "unknown variant `=<`",
        ),
        (
            r#"{"left": "m", "op": "<=", "right": 1}"#,
            r#"no parameter "m""#,
        ),
        (
            r#"{"left": "n", "op": "<=", "right": "m"}"#,
            "neither a parameter (n, c, o) nor a value",
        ),
        (
            r#"{"left": "n", "op": "<=", "right": "c"}"#,
            "no common order",
        ),
        (
            r#"{"left": "c", "op": "<=", "right": "x"}"#,
            "no common order",
        ),
        (
            r#"{"left": "c", "op": "==", "right": 3}"#,
            "parameter c cannot be",
        ),
        (r#"{"forbid": {}}"#, "at least one value"),
        (r#"{"forbid": {"n": []}}"#, "at least one value"),
        (r#"{"forbid": {"n": [7]}}"#, "an integer from 1 to 4"),
        (
            r#"{"left": "n", "op": ">", "right": 2}"#,
            r#"the default breaks a constraint: "n=2" does not go together here: the constraint "n > 2" must hold"#,
        ),
        (r#"{"left": "o", "op": "==", "right": "high"}"#, "o == high"),
    ] {
        let message = with("", constraint);
        assert!(message.contains(words), "{constraint}: {message}");
    }
}

#[test]
fn values_compare_by_worth_by_size_and_by_list() {
    let space = |constraint: &str| -> Space {
        serde_json::from_str(&format!(
            r#"{{"parameters": [
            {{"name": "a", "kind": "ordered", "values": ["4K", "1MiB", "2M"], "default": "4K"}},
            {{"name": "b", "kind": "ordered", "values": [4096, 65536, 1048576], "default": 4096}},
            {{"name": "o", "kind": "ordered", "values": ["low", "mid", "high"], "default": "low"}},
            {{"name": "q", "kind": "ordered", "values": ["low", "mid", "high"], "default": "low"}}],
            "constraints": [{constraint}]}}"#
        ))
        .unwrap()
    };
    let admitted = |constraint: &str| space(constraint).points(100).unwrap().len();
    // Of nine pairs: 4K <= all three, 1MiB <= the last, 2M <= none.
    assert_eq!(
        admitted(r#"{"left": "a", "op": "<=", "right": "b"}"#),
        4 * 9
    );
    assert_eq!(
        admitted(r#"{"left": "a", "op": "==", "right": "b"}"#),
        2 * 9
    );
    assert_eq!(
        admitted(r#"{"left": "a", "op": "<", "right": 1048577}"#),
        2 * 27
    );
    assert_eq!(
        admitted(r#"{"left": "b", "op": "<", "right": "1M"}"#),
        2 * 27
    );
    assert_eq!(
        admitted(r#"{"left": "o", "op": "<=", "right": "mid"}"#),
        2 * 27
    );
    assert_eq!(
        admitted(r#"{"left": "o", "op": ">=", "right": "q"}"#),
        6 * 9
    );
    assert_eq!(
        admitted(r#"{"left": "o", "op": "!=", "right": "mid"}"#),
        2 * 27
    );
    assert_eq!(
        admitted(r#"{"forbid": {"o": ["mid", "high"], "a": ["2M"]}}"#),
        81 - 2 * 9
    );
}

#[test]
fn large_spaces_are_not_listed_and_yet_drawn_from() {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let space = huge();
    assert_eq!(space.points(50_000), None);
    let mut distinct = BTreeSet::new();
    for _ in 0..200 {
        let point = space.draw(&mut rng);
        assert!(is_sound(&space, &point));
        distinct.insert(point);
    }
    assert!(distinct.len() > 190, "{}", distinct.len());
    // Nothing but the default is left, and no draw finds that by chance.
    let mut constraints = Vec::new();
    for parameter in grid(&[1000; 20]).parameters() {
        constraints.push(Constraint::Compare {
            left: parameter.name.clone(),
            op: Comparison::Equal,
            right: Value::Integer(0),
        });
    }
    let parameters = grid(&[1000; 20]).parameters().to_vec();
    let one = Space::constrained(parameters, constraints).unwrap();
    assert_eq!(one.draw(&mut rng), one.default_point());
    // Each parameter depends on the one before: 21 points of a grid of a million.
    let mut chain = grid(&[2; 20]).parameters().to_vec();
    for place in 1..20 {
        chain[place].when = Some(Condition {
            parameter: chain[place - 1].name.clone(),
            is: vec![Value::Integer(1)],
        });
    }
    let chain = Space::new(chain).unwrap();
    assert_eq!(
        (chain.size(), chain.points(21).unwrap().len()),
        (1 << 20, 21)
    );
    assert_eq!(chain.points(20), None);
}

proptest! {
    #[test]
    fn the_points_are_those_of_the_grid_that_are_sound(seed: u64) {
        let space = any_constrained(seed);
        let levels: Vec<u32> = space.parameters().iter().map(|p| p.levels() as u32).collect();
        let whole = grid(&levels).points(1 << 20).unwrap();
        prop_assert_eq!(whole.len() as u128, space.size());
        let sound: Vec<Point> = whole.into_iter().filter(|point| is_sound(&space, point)).collect();
        let canonical = |point: &Point| space.canonical(point.clone()) == *point;
        prop_assert!(sound.iter().all(|point| space.admits(point) && canonical(point)));
        prop_assert!(sound.contains(&space.default_point()));
        prop_assert_eq!(space.points(sound.len()), Some(sound.clone()));
        prop_assert_eq!(space.points(sound.len() - 1), None);
        let json = serde_json::to_string(&space).unwrap();
        prop_assert_eq!(&serde_json::from_str::<Space>(&json).unwrap(), &space);
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut reached = BTreeSet::new();
        for _ in 0..20 {
            let (one, other) = (space.draw(&mut rng), space.draw(&mut rng));
            prop_assert!(is_sound(&space, &one));
            let wild = Point(levels.iter().map(|levels| rng.random_range(0..*levels)).collect());
            prop_assert!(is_sound(&space, &space.approach(&one, &space.canonical(wild), &mut rng)));
            prop_assert!(space.distance(&one, &other) <= 1.0);
            prop_assert_eq!(space.distance(&one, &one), 0.0);
            reached.insert(one);
        }
        prop_assert!(reached.len() > 1 || sound.len() < 5, "draws vary");
    }
}
