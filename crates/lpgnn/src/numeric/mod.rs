mod dispatch;
mod lanes;
mod matrix;
mod norms;
mod product;
mod scalar;
mod scratch;
mod tanh;

pub(crate) use dispatch::{Arithmetic, Kernel, dispatch};
pub(crate) use lanes::{LANES, Lanes, each, for_lanes, total};
pub use matrix::Matrix;
pub use norms::NormMemory;
pub(crate) use norms::largest_column_sum;
pub(crate) use product::{Factors, Finish, Packed, padded, product, transposed_product};
pub use scalar::Scalar;
pub(crate) use scalar::worse;
pub use scratch::Scratch;
pub(crate) use scratch::{Spare, SpareMatrix};
