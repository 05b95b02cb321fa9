use std::fmt;
use std::path::Path;
use std::str::FromStr;

use super::work_folder::FolderLock;
use crate::Error;

/// One of `count` parts of an experiment: every `count`-th item of its work, from the `number`-th on.
///
/// ```
/// use lpgnn::experiment::Shard;
///
/// let shard: Shard = "2/3".parse()?;
/// assert_eq!((shard.number(), shard.count(), shard.to_string()), (2, 3, "2/3".into()));
/// assert!("4/3".parse::<Shard>().is_err());
/// # Ok::<(), lpgnn::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shard {
    number: usize,
    count: usize,
}

impl Shard {
    /// The shard of this number, from 1 to `count`; none for any other.
    pub fn new(number: usize, count: usize) -> Option<Self> {
        (1..=count).contains(&number).then_some(Self { number, count })
    }

    /// Its number, from 1.
    pub fn number(self) -> usize {
        self.number
    }

    /// How many shards there are.
    pub fn count(self) -> usize {
        self.count
    }
}

impl FromStr for Shard {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let numbers = text.split_once('/').and_then(|(number, count)| {
            Self::new(number.trim().parse().ok()?, count.trim().parse().ok()?)
        });
        numbers.ok_or_else(|| Error::Option {
            option: "shard",
            value: text.to_owned(),
            expected: "I/N with I from 1 to N is expected, such as 1/3".into(),
        })
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.count)
    }
}

/// What a process does of an experiment that several processes may work on at the same time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    shard: Shard,
    rest: Rest,
    /// How many items of other work are counted before those of this one.
    offset: usize,
}

/// What becomes of the items of other shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Rest {
    /// They are left to other processes.
    Left,
    /// Those that nobody works on are done too; nobody is waited for.
    Helped,
    /// They are done too, or waited for.
    Awaited,
}

impl Share {
    /// All of it. What another process works on is waited for.
    pub fn whole() -> Self {
        Self { shard: Shard { number: 1, count: 1 }, rest: Rest::Awaited, offset: 0 }
    }

    /// A shard, and nothing else; but in the rounds of a search, which need all trials of the round before, what nobody
    /// works on is done instead of waiting for it.
    pub fn shard(shard: Shard) -> Self {
        Self { shard, rest: Rest::Left, offset: 0 }
    }

    /// That of a process of a job, which share all of it: each its own shard, and then what nobody works on. The first
    /// one waits for the others; none where there is no such process.
    pub fn of_rank(rank: usize, ranks: usize) -> Option<Self> {
        let rest = if rank == 0 { Rest::Awaited } else { Rest::Helped };
        Some(Self { shard: Shard::new(rank + 1, ranks)?, rest, offset: 0 })
    }

    /// The same without waiting for anybody, where there are others who may be waited for.
    pub fn helping(self) -> Option<Self> {
        let waits = self.rest == Rest::Awaited && self.shard.count > 1;
        waits.then_some(Self { rest: Rest::Helped, ..self })
    }

    /// A lock on it in a folder. Helpers have none: whoever has started them sees to it that there is one of each.
    ///
    /// # Errors
    ///
    /// [`Error::Folder`], [`Error::Locked`] when another process has it; [`Error::Io`].
    pub fn lock(self, folder: &Path) -> Result<Option<FolderLock>, Error> {
        let Self { shard, rest, .. } = self;
        match rest {
            Rest::Awaited => FolderLock::take(folder).map(Some),
            Rest::Helped => Ok(None),
            Rest::Left => {
                let item = format!("shard-{}-of-{}", shard.number, shard.count);
                let lock = FolderLock::try_item(folder, &item)?;
                let problem = || format!("already has a process working on shard {shard}");
                let taken = || Error::Folder { path: folder.to_owned(), problem: problem() };
                lock.ok_or_else(taken).map(Some)
            }
        }
    }

    /// What it does of so many items: its own ones first, and then those that it may do for others. All that it may do where
    /// nobody can go on before all are done, which is a `barrier`.
    pub fn order(self, items: usize, barrier: bool) -> Vec<usize> {
        let (mut own, others): (Vec<usize>, Vec<usize>) =
            (0..items).partition(|&item| self.owns(item));
        if barrier || self.rest != Rest::Left {
            own.extend(others);
        }
        own
    }

    /// Whether it waits for what other processes work on.
    pub fn waits(self) -> bool {
        self.rest == Rest::Awaited
    }

    /// The same where other work with so many items comes first.
    #[must_use]
    pub fn after(self, items: usize) -> Self {
        Self { offset: self.offset + items, ..self }
    }

    /// Whether an item is one of its shard.
    pub fn owns(self, item: usize) -> bool {
        (item + self.offset) % self.shard.count == self.shard.number - 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_in_one_shard() {
        for count in 1..5 {
            let shards: Vec<Shard> = (1..=count).filter_map(|k| Shard::new(k, count)).collect();
            assert_eq!(shards.len(), count);
            for (item, offset) in [(0, 0), (7, 0), (0, 10), (3, 11)] {
                let owners = |shard: &&Shard| Share::shard(**shard).after(offset).owns(item);
                assert_eq!(shards.iter().filter(owners).count(), 1, "{item}, {offset}, {count}");
            }
        }
    }

    #[test]
    fn what_is_no_shard_is_told() {
        for wrong in ["0/3", "4/3", "a/b", "1", "", "1/0", "-1/3", "1/2/3"] {
            let said = wrong.parse::<Shard>().unwrap_err().to_string();
            let expected = "I/N with I from 1 to N is expected, such as 1/3";
            assert_eq!(said, format!("shard is {wrong}, but {expected}"));
        }
    }
}
