use proptest::prelude::*;

use super::*;
use crate::testing::{categories, grid, integers};

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
