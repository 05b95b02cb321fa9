//! All tests of the library from outside, as one program: what is generic in the library is then compiled
//! for the tests once, and not once per file.

mod common;
mod mat;
mod npz;

mod book;
mod ensemble;
mod explain;
mod fetch;
mod fuzz;
mod golden;
mod gradients;
mod inference;
mod instruction_sets;
mod instructions;
mod isolated;
mod laws;
mod live;
mod one_shot_rate;
mod promises;
mod ranks;
mod readers;
mod real_data;
mod real_folds;
mod reports;
mod round_trip;
mod run_files;
mod settings;
mod solvers;
mod stages;
mod structure;
mod tensorboard;
mod training;
mod warm_start;
mod weights;
