//! What this machine can do at best: memory, multiply-adds, products, tanh.
//!
//! ```sh
//! cargo bench -p lpgnn --bench machine -- [--threads N] [--json]
//! ```
#![allow(clippy::unwrap_used, clippy::print_stdout, missing_docs, reason = "this is a program")]

mod support;

use support::machine::Machine;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let threads = arguments.iter().position(|argument| argument == "--threads");
    let threads = threads.map_or(1, |at| arguments[at + 1].parse().unwrap());
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).use_current_thread();
    pool.build_global().unwrap();
    let Machine { triad, peak, product, tanh } = Machine::measure();
    let [triad, peak, product, tanh] = [triad, peak, product, tanh].map(|x| x / 1e9);
    if arguments.iter().any(|argument| argument == "--json") {
        println!(
            "{{\"threads\":{threads},\"simd\":\"{}\",\"triad\":{triad:.2},\"peak\":{peak:.2},\"product\":{product:.2},\"tanh\":{tanh:.3}}}",
            lpgnn::kernels::instruction_set()
        );
    } else {
        println!("{threads} threads, our loops on {}", lpgnn::kernels::instruction_set());
        println!("triad     {triad:8.2} GB/s");
        println!("peak      {peak:8.2} GFLOP/s");
        println!("product   {product:8.2} GFLOP/s");
        println!("tanh      {tanh:8.3} G/s");
    }
}
