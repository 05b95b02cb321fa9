//! Optimisers: how a variable follows its gradient.
//!
//! They keep nothing themselves. Moments and the number of the step come from outside, so that
//! whoever calls decides where they live; solvers keep them in
//! [`Slots`](crate::saddle::Slots), where a checkpoint finds them.
//!
//! ```
//! use lpgnn::optim::{Adam, Sgd};
//!
//! // Half the square of x, whose gradient is x.
//! let (mut x, mut m, mut v) = ([1.0_f64], [0.0], [0.0]);
//! for step in 1..=2000 {
//!     let gradient = x;
//!     Adam::new(0.01).descend(step, &mut x, &gradient, [&mut m, &mut v]);
//! }
//! assert!(x[0].abs() < 0.01);
//!
//! let gradient = [4.0];
//! Sgd::new(0.5).ascend(&mut x, &gradient);
//! assert!((x[0] - 2.0).abs() < 0.01);
//! ```

mod adam;
mod sgd;

pub use adam::Adam;
pub use sgd::{Sgd, axpy};

/// Numbers below which a step is not worth a second thread.
pub(crate) const CHUNK: usize = 1 << 15;
