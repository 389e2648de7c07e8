//! A new migration is built in: `sqlx::migrate!` sees only those files change that it knows.

fn main() {
    println!("cargo:rerun-if-changed=../../migrations");
}
