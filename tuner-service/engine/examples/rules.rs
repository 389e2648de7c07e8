//! Renews the table of rules in docs/engine.md, whose path it is given: `make rules`.

use std::env;
use std::fs;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = env::args().nth(1).ok_or("give the page's path")?;
    let page = fs::read_to_string(&path)?;
    let renewed = io_autotune_engine::with_rules_table(&page);
    fs::write(&path, renewed.ok_or("the page marks no table")?)?;
    Ok(())
}
