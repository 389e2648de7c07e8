//! The draws of a replay, written down: `analysis/laboratory/peers` reads the same tables in Python, and has to see
//! the same times. Both compare with `fixtures/draws-expected.csv`.

#![allow(clippy::unwrap_used)]

use std::path::PathBuf;

use io_autotune_simulation::dataset::Table;

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures")
        .join(name)
}

/// Every draw as `seed,place,nth,time`, and the places of default and best.
fn rendered() -> String {
    let table = Table::read(&fixture("draws.json")).unwrap();
    let place = |point| table.place(point).unwrap();
    let mut lines = format!(
        "# default {} best {}\nseed,place,nth,time\n",
        place(&table.default().point),
        place(&table.best().point)
    );
    for seed in [0, 1, 99, u64::MAX] {
        for place in 0..table.configurations().len() {
            for nth in [0, 1, 2, 49] {
                let time = table.draw(place, nth, seed).unwrap();
                lines.push_str(&format!("{seed},{place},{nth},{time}\n"));
            }
        }
    }
    lines
}

#[test]
fn the_draws_are_those_written_down() {
    let expected = std::fs::read_to_string(fixture("draws-expected.csv")).unwrap();
    assert_eq!(rendered(), expected);
}

#[test]
#[ignore = "writes the fixture: cargo test -p io-autotune-simulation --test draws -- --ignored"]
fn write_the_draws_down() {
    std::fs::write(fixture("draws-expected.csv"), rendered()).unwrap();
}

#[test]
fn every_table_of_the_tree_is_read() {
    let data = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../analysis/data");
    let folders = ["", "held-out", "papers", "patterns"].map(|name| data.join(name));
    for folder in folders {
        let files = std::fs::read_dir(&folder).unwrap();
        let mut tables = files.map(|file| file.unwrap().path()).collect::<Vec<_>>();
        tables.retain(|path| path.extension().is_some_and(|suffix| suffix == "json"));
        assert!(!tables.is_empty(), "{}", folder.display());
        for path in tables {
            let table = Table::read(&path);
            assert!(table.is_ok(), "{}: {:?}", path.display(), table.err());
        }
    }
}
