use crate::numeric::prefetch;

/// Lists that grow and shrink, all of them in one block of memory.
///
/// A list that outgrows its room moves to one a quarter larger or so; what it leaves is used by others. So a change
/// takes a time proportional to the list, amortised, and lists that never change take no more room than their entries.
#[derive(Clone, Debug, Default)]
pub(super) struct Slots<T> {
    entries: Vec<T>,
    lists: Vec<Slot>,
    /// Where there is room, by its [class](class_below).
    free: Vec<Vec<(u32, u32)>>,
    /// Entries of all lists.
    used: usize,
}

#[derive(Clone, Copy, Debug, Default)]
struct Slot {
    start: u32,
    len: u32,
    room: u32,
}

impl<T: Copy + Default> Slots<T> {
    /// Number of lists.
    pub(super) fn lists(&self) -> usize {
        self.lists.len()
    }

    /// The entries of a list.
    #[inline]
    pub(super) fn of(&self, list: usize) -> &[T] {
        let Slot { start, len, .. } = self.lists[list];
        &self.entries[start as usize..][..len as usize]
    }

    /// Where a list is will soon be asked.
    #[inline]
    pub(super) fn call_for(&self, list: usize) {
        prefetch(&self.lists, list);
    }

    /// Its entries will be, too.
    #[inline]
    pub(super) fn call_for_entries(&self, list: usize) {
        prefetch(&self.entries, self.lists[list].start as usize);
    }

    /// The same, to be changed.
    pub(super) fn of_mut(&mut self, list: usize) -> &mut [T] {
        let Slot { start, len, .. } = self.lists[list];
        &mut self.entries[start as usize..][..len as usize]
    }

    /// Length of a list.
    #[inline]
    pub(super) fn len(&self, list: usize) -> usize {
        self.lists[list].len as usize
    }

    /// Bytes that it takes.
    pub(super) fn bytes(&self) -> usize {
        let free: usize =
            self.free.iter().map(|free| free.capacity() * size_of::<(u32, u32)>()).sum();
        self.entries.capacity() * size_of::<T>() + self.lists.capacity() * size_of::<Slot>() + free
    }

    /// Appends a list that takes no more room than it needs.
    #[allow(clippy::cast_possible_truncation, reason = "whoever adds checks that there is room")]
    pub(super) fn push(&mut self, entries: impl Iterator<Item = T>) {
        let start = self.entries.len();
        self.entries.extend(entries);
        let len = (self.entries.len() - start) as u32;
        self.used += len as usize;
        self.lists.push(Slot { start: start as u32, len, room: len });
    }

    /// Makes room for this number of entries and lists, and no more.
    pub(super) fn reserve(&mut self, entries: usize, lists: usize) {
        self.entries.reserve_exact(entries);
        self.lists.reserve_exact(lists);
    }

    /// Whether entries could no longer be numbered if a list grew by `more`.
    pub(super) fn is_full(&self, more: usize) -> bool {
        self.entries.len() + 4 * more + 64 >= u32::MAX as usize
    }

    /// Puts an entry into a list.
    pub(super) fn insert(&mut self, list: usize, at: usize, entry: T) {
        let Slot { start, len, room } = self.lists[list];
        if len == room {
            self.resize(list, len as usize + 1);
            let slot = &mut self.lists[list];
            slot.len = len;
            return self.insert(list, at, entry);
        }
        let (start, len) = (start as usize, len as usize);
        self.entries.copy_within(start + at..start + len, start + at + 1);
        self.entries[start + at] = entry;
        self.lists[list].len += 1;
        self.used += 1;
    }

    /// Takes an entry out of a list.
    pub(super) fn remove(&mut self, list: usize, at: usize) {
        let Slot { start, len, .. } = self.lists[list];
        let (start, len) = (start as usize, len as usize);
        self.entries.copy_within(start + at + 1..start + len, start + at);
        self.lists[list].len -= 1;
        self.used -= 1;
    }

    /// Replaces a list.
    pub(super) fn set(&mut self, list: usize, entries: &[T]) {
        self.used = self.used - self.lists[list].len as usize + entries.len();
        if entries.len() > self.lists[list].room as usize {
            self.lists[list].len = 0;
            self.resize(list, entries.len());
        }
        #[allow(clippy::cast_possible_truncation, reason = "it fits its room")]
        {
            self.lists[list].len = entries.len() as u32;
        }
        self.of_mut(list).copy_from_slice(entries);
    }

    /// Moves a list to a place with more room.
    #[allow(clippy::cast_possible_truncation, reason = "whoever adds checks that there is room")]
    fn resize(&mut self, list: usize, least: usize) {
        if self.entries.len() > self.used + self.used / 8 + 64 {
            self.compact();
        }
        let old = self.lists[list];
        let class = class_above(least);
        let left = self.free.get_mut(class).and_then(Vec::pop);
        let (start, room) = left.unwrap_or_else(|| {
            let start = self.entries.len();
            let room = room_of(class);
            // A large block grows by a little, so that it does not take twice its size.
            if self.entries.capacity() < start + room {
                self.entries.reserve_exact(room + start / 32);
            }
            self.entries.resize(start + room, T::default());
            (start as u32, room as u32)
        });
        let from = old.start as usize;
        self.entries.copy_within(from..from + old.len as usize, start as usize);
        self.lists[list] = Slot { start, len: old.len, room };
        if old.room > 0 {
            let class = class_below(old.room as usize);
            if self.free.len() <= class {
                self.free.resize_with(class + 1, Vec::new);
            }
            self.free[class].push((old.start, old.room));
        }
    }
}

/// Lists that have no room left when an eighth of it is not used are packed; so much has changed before that again.
impl<T: Copy + Default> Slots<T> {
    #[allow(clippy::cast_possible_truncation, reason = "there is less than before")]
    fn compact(&mut self) {
        let mut entries = Vec::new();
        entries.reserve_exact(self.used + self.used / 32 + 64);
        for slot in &mut self.lists {
            let start = entries.len() as u32;
            entries.extend_from_slice(&self.entries[slot.start as usize..][..slot.len as usize]);
            *slot = Slot { start, len: slot.len, room: slot.len };
        }
        (self.entries, self.free) = (entries, vec![]);
    }
}

/// Entries of a class: 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, …
fn room_of(class: usize) -> usize {
    match class.checked_sub(4) {
        None => class + 1,
        Some(class) => (5 + class % 4) << (class / 4),
    }
}

/// The first class with room for as many.
fn class_above(entries: usize) -> usize {
    let mut class = 0;
    while room_of(class) < entries {
        class += 1;
    }
    class
}

/// The last class that fits into so much room, which is not 0.
fn class_below(room: usize) -> usize {
    let mut class = 0;
    while room_of(class + 1) <= room {
        class += 1;
    }
    class
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uniform;

    #[test]
    fn classes_grow_by_a_quarter_at_most() {
        let rooms: Vec<usize> = (0..14).map(room_of).collect();
        assert_eq!(rooms, [1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24]);
        for room in 1..1000 {
            assert!(room_of(class_above(room)) >= room && room_of(class_below(room)) <= room);
        }
    }

    #[test]
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "small numbers")]
    fn lists_hold_what_vectors_would_and_reuse_their_room() {
        let mut draw = uniform(3);
        let (mut slots, mut vectors) = (Slots::default(), vec![]);
        for list in 0..20_u32 {
            slots.push(0..list);
            vectors.push((0..list).collect::<Vec<u32>>());
        }
        for step in 0..20_000_u32 {
            let list = (draw() * 20.0) as usize;
            let at = (draw() * (vectors[list].len() + 1) as f64) as usize;
            if draw() < 0.5 {
                slots.insert(list, at, step);
                vectors[list].insert(at, step);
            } else if at < vectors[list].len() {
                slots.remove(list, at);
                vectors[list].remove(at);
            } else {
                let new: Vec<u32> = (0..at as u32 / 2).collect();
                slots.set(list, &new);
                vectors[list] = new;
            }
        }
        for (list, vector) in vectors.iter().enumerate() {
            assert_eq!(slots.of(list), vector);
        }
        let held: usize = vectors.iter().map(Vec::len).sum();
        assert_eq!(slots.used, held);
        assert!(slots.entries.len() < 2 * held + 200, "{} for {held}", slots.entries.len());
    }
}
