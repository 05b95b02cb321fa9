use std::ops::ControlFlow;
use std::sync::Mutex;
use std::time::Duration;

use super::observer::{TrialName, Watched};
use super::parallel;
use super::result_folder::ResultFolder;
use super::work_folder::FolderLock;
use crate::Error;

/// An item of work that is done once, by whichever process has its lock.
#[derive(Clone, Debug)]
pub(super) struct Item {
    pub(super) name: TrialName,
    pub(super) lock: String,
    /// The file that is there when it is done.
    pub(super) result: String,
}

/// Items of work in a folder that several processes may have open.
pub(super) struct SharedWork<'a> {
    pub(super) folder: &'a ResultFolder,
    pub(super) items: &'a [Item],
    pub(super) watched: &'a Watched<'a>,
    /// Whether no process can go on before all items are done.
    pub(super) barrier: bool,
}

/// How long to wait before looking again at what other processes do.
const INTERVAL: Duration = Duration::from_millis(200);

impl SharedWork<'_> {
    /// Does the items that are this process's, in parallel, until they are done or `stop` says so; `elsewhere` is called for
    /// those that another process has done meanwhile.
    pub(super) fn complete(
        &self,
        stop: &(dyn Fn() -> bool + Sync),
        work: impl Fn(usize) -> Result<(), Error> + Sync,
        elsewhere: impl Fn(usize) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let share = self.folder.share();
        let mut left = share.order(self.items.len(), self.barrier);
        left.retain(|&item| !self.done(item));
        let waits = self.barrier || share.waits();
        loop {
            let begun = Mutex::new(vec![]);
            parallel::each(left.len(), stop, |place| {
                let item = left[place];
                let Some(_lock) = self.lock(item)? else { return Ok(()) };
                // Another process may have done it just before.
                if self.done(item) {
                    return Ok(());
                }
                if let Ok(mut begun) = begun.lock() {
                    begun.push(item);
                }
                work(item)
            })?;
            let begun = begun.into_inner().unwrap_or_default();
            for &item in left.iter().filter(|item| self.done(**item) && !begun.contains(item)) {
                elsewhere(item)?;
            }
            left.retain(|&item| !self.done(item));
            if left.is_empty() || !waits || stop() {
                return Ok(());
            }
            if begun.is_empty() && self.wait(left[0]).is_break() {
                return Ok(());
            }
        }
    }

    fn done(&self, item: usize) -> bool {
        self.folder.has(&self.items[item].result)
    }

    /// None while another process has it.
    fn lock(&self, item: usize) -> Result<Option<FolderLock>, Error> {
        let lock = FolderLock::try_item(self.folder.path(), &self.items[item].lock)?;
        // Where there are no locks, nobody knows whether the others are at work.
        Ok(lock.filter(|lock| lock.is_held() || self.folder.share().owns(item)))
    }

    /// Lets some time pass, unless the observer stops it.
    fn wait(&self, item: usize) -> ControlFlow<()> {
        let answer = self.watched.observer.waiting(self.items[item].name);
        if answer.is_break() {
            self.watched.stop();
        } else {
            std::thread::sleep(INTERVAL);
        }
        answer
    }
}
