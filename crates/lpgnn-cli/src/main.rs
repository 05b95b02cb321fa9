//! The program `lpgnn`.

fn main() {}
