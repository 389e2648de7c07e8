//! Cargo must rebuild when a migration is added: `sqlx::migrate!` only notices changes of the files
//! that it knows.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
