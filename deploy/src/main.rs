//! The `sirocco` executable.
mod supervisor;
fn main() {}
