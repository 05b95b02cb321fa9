use lpgnn::registry::Registry;

/// The functions that settings can name: those of the library, and the systems that LP-GNN is compared with.
pub(crate) fn registry() -> Registry<f32> {
    lpgnn_baselines::registry()
}
