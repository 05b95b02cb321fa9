//! Tells the library which target it is compiled for: a run record says so.

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let target = std::env::var("TARGET").unwrap_or_default();
    println!("cargo:rustc-env=LPGNN_TARGET={target}");
}
