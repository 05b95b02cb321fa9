//! Lets `cargo build` link the extension where a linker asks for it, as maturin does.

fn main() {
    // Without this, cargo compiles the extension again whenever a file of the Python package changes.
    println!("cargo:rerun-if-changed=build.rs");
    pyo3_build_config::add_extension_module_link_args();
}
