//! Renews the tables in docs/engine.md and docs/run.md that lists in the code are the source of: `make rules`.

use std::env;
use std::fs;
use std::path::Path;

use io_autotune_engine::with_rules_table;
use io_autotune_model::NotCountedBecause;

/// A page with its table renewed, if it marks one.
type Renewed = fn(&str) -> Option<String>;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let docs = env::args()
        .nth(1)
        .ok_or("give the directory of the pages")?;
    let pages: [(&str, Renewed); 2] = [
        ("engine.md", with_rules_table),
        ("run.md", NotCountedBecause::with_table),
    ];
    for (name, renew) in pages {
        let path = Path::new(&docs).join(name);
        let renewed = renew(&fs::read_to_string(&path)?);
        fs::write(&path, renewed.ok_or("the page marks no table")?)?;
    }
    Ok(())
}
