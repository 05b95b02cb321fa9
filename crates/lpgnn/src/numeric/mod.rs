mod matrix;
mod scalar;

pub use matrix::Matrix;
pub use scalar::Scalar;
