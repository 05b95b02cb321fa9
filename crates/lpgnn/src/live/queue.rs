use crate::numeric::prefetch;

/// Nodes whose residual is to be reduced, the largest first.
///
/// Nodes with residuals of the same power of two share a bucket, and come in the order of their numbers. So the order
/// depends on the residuals alone, and not on how they came about.
#[derive(Clone, Debug, Default)]
pub(super) struct Queue {
    buckets: Vec<Vec<u32>>,
    /// The bucket of every node, or [`NONE`].
    places: Vec<u8>,
    /// All buckets above are empty.
    top: usize,
}

const NONE: u8 = u8::MAX;
/// Residuals of `2^63` times the smallest that matters, or unknown ones, share the last bucket.
const BUCKETS: usize = 64;

impl Queue {
    pub(super) fn new(nodes: usize) -> Self {
        Self { buckets: vec![vec![]; BUCKETS], places: vec![NONE; nodes], top: 0 }
    }

    pub(super) fn push_node(&mut self) {
        self.places.push(NONE);
    }

    /// The place of a node will soon be asked.
    #[inline]
    pub(super) fn call_for(&self, node: usize) {
        prefetch(&self.places, node);
    }

    /// Puts a node where a residual of `ratio` times the smallest that matters belongs; nowhere below 1.
    #[inline]
    #[allow(clippy::cast_possible_truncation, reason = "there are 64 buckets")]
    pub(super) fn put(&mut self, node: usize, ratio: f64) {
        let place = if ratio > 1.0 { bucket(ratio) } else { NONE as usize };
        if self.places[node] as usize != place {
            self.places[node] = place as u8;
            if place < BUCKETS {
                self.buckets[place].push(node as u32);
                self.top = self.top.max(place);
            }
        }
    }

    /// Takes out all nodes with the largest residuals, if any matters.
    pub(super) fn pop(&mut self, nodes: &mut Vec<u32>) -> bool {
        nodes.clear();
        while self.top > 0 || !self.buckets[0].is_empty() {
            let top = self.top;
            for node in self.buckets[top].drain(..) {
                // One that has moved since is in another bucket too.
                let place = &mut self.places[node as usize];
                if *place as usize == top {
                    *place = NONE;
                    nodes.push(node);
                }
            }
            if !nodes.is_empty() {
                nodes.sort_unstable();
                return true;
            }
            if top == 0 {
                break;
            }
            self.top -= 1;
        }
        false
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let buckets: usize = self.buckets.iter().map(Vec::capacity).sum();
        self.places.capacity() + buckets * size_of::<u32>()
    }

    /// Gives back the room of buckets that were long once.
    pub(super) fn shrink(&mut self) {
        self.buckets.iter_mut().for_each(|bucket| bucket.shrink_to(64));
    }
}

/// `⌊log₂ ratio⌋`, for ratios of at least 1.
#[allow(clippy::cast_possible_truncation, reason = "an exponent has 11 bits")]
fn bucket(ratio: f64) -> usize {
    let exponent = (ratio.to_bits() >> 52) as usize & 0x7ff;
    exponent.saturating_sub(1023).min(BUCKETS - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_come_first_and_each_once() {
        let mut queue = Queue::new(10);
        for (node, ratio) in
            [(3, 5.0), (1, 5.5), (2, 0.5), (4, 100.0), (5, 1.5), (4, 6.0), (6, f64::INFINITY)]
        {
            queue.put(node, ratio);
        }
        queue.put(5, 0.1);
        let mut nodes = vec![];
        let mut all = vec![];
        while queue.pop(&mut nodes) {
            all.push(nodes.clone());
        }
        assert_eq!(all, [vec![6], vec![1, 3, 4]]);
        queue.put(5, 1.5);
        queue.put(7, 9.0);
        assert!(queue.pop(&mut nodes) && nodes == [7]);
        assert!(queue.pop(&mut nodes) && nodes == [5]);
        assert!(!queue.pop(&mut nodes));
    }
}
