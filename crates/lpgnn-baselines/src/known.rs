//! What was found out about graphs before, which training asks for in every epoch.

use std::collections::HashMap;
use std::fmt::Debug;
use std::sync::{Arc, Mutex, PoisonError};

use crate::structure::Structure;

/// Some values of every graph that was seen, up to a number of values in all.
#[derive(Debug)]
pub(crate) struct Known<T>(Mutex<Kept<T>>);

#[derive(Debug)]
struct Kept<T> {
    graphs: HashMap<[u64; 2], Arc<[T]>>,
    values: usize,
}

/// Values that are kept, of at most 8 bytes each; what does not fit is found out again each time.
const MOST_VALUES: usize = 1 << 24;

impl<T> Default for Known<T> {
    fn default() -> Self {
        Self(Mutex::new(Kept { graphs: HashMap::new(), values: 0 }))
    }
}

impl<T> Known<T> {
    /// The values of a graph.
    pub(crate) fn of(&self, graph: &Structure, find: impl FnOnce() -> Arc<[T]>) -> Arc<[T]> {
        // A thread that panicked has left all values of a graph or none.
        let lock = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let key = graph.key();
        if let Some(values) = lock().graphs.get(&key) {
            return Arc::clone(values);
        }
        let values = find();
        let mut kept = lock();
        // Another thread may have found the same.
        if kept.values + values.len() <= MOST_VALUES && !kept.graphs.contains_key(&key) {
            kept.values += values.len();
            kept.graphs.insert(key, Arc::clone(&values));
        }
        values
    }
}
