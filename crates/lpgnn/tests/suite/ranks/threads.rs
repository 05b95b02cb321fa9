//! Threads that talk like the processes of a job.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use lpgnn::graph::Communicator;

/// Messages that were sent and not yet received, by who sends them to whom.
type Messages = HashMap<(usize, usize), VecDeque<Vec<u8>>>;

#[derive(Debug, Default)]
struct Post {
    messages: Mutex<Messages>,
    sent: Condvar,
}

#[derive(Debug)]
struct Thread {
    rank: usize,
    ranks: usize,
    post: Arc<Post>,
}

impl Communicator for Thread {
    fn rank(&self) -> usize {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn exchange(&self, sends: &[(usize, &[u8])], receives: &mut [(usize, &mut [u8])]) {
        let mut messages = self.post.messages.lock().unwrap();
        for (to, bytes) in sends {
            assert_ne!(*to, self.rank);
            messages.entry((self.rank, *to)).or_default().push_back(bytes.to_vec());
        }
        self.post.sent.notify_all();
        for (from, into) in receives {
            let message = loop {
                if let Some(message) =
                    messages.get_mut(&(*from, self.rank)).and_then(VecDeque::pop_front)
                {
                    break message;
                }
                let (held, waited) =
                    self.post.sent.wait_timeout(messages, Duration::from_secs(60)).unwrap();
                messages = held;
                assert!(!waited.timed_out(), "{} waits for {from}", self.rank);
            };
            assert_eq!(message.len(), into.len(), "from {from} to {}", self.rank);
            into.copy_from_slice(&message);
        }
    }

    fn all_gather(&self, all: &mut [u8], ends: &[usize]) {
        assert_eq!((ends.len(), ends[ends.len() - 1]), (self.ranks, all.len()));
        let start = |rank: usize| rank.checked_sub(1).map_or(0, |before| ends[before]);
        let own = all[start(self.rank)..ends[self.rank]].to_vec();
        let others = || (0..self.ranks).filter(|&rank| rank != self.rank);
        let sends: Vec<(usize, &[u8])> = others().map(|to| (to, &own[..])).collect();
        self.exchange(&sends, &mut []);
        for from in others() {
            self.exchange(&[], &mut [(from, &mut all[start(from)..ends[from]])]);
        }
    }

    fn abort(&self, code: i32) -> ! {
        panic!("aborted with {code}")
    }
}

/// What `work` returns on every one of so many ranks.
pub(super) fn on_ranks<R: Send>(
    ranks: usize,
    work: impl Fn(Arc<dyn Communicator>) -> R + Sync,
) -> Vec<R> {
    let post = Arc::new(Post::default());
    std::thread::scope(|scope| {
        let start = |rank| {
            let (post, work) = (Arc::clone(&post), &work);
            scope.spawn(move || work(Arc::new(Thread { rank, ranks, post })))
        };
        let threads: Vec<_> = (0..ranks).map(start).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}
