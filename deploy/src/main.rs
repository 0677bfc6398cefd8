//! The `sirocco` executable.

fn main() {}
