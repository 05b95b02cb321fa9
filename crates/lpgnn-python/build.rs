//! Lets `cargo build` link the extension where a linker asks for it, as maturin does.

fn main() {
    pyo3_build_config::add_extension_module_link_args();
}
