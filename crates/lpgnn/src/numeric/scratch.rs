use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::{Matrix, Scalar};

/// Numbers of single precision in a line of the cache.
const LINE: usize = 16;

/// Threads with a shelf of their own; of more, some share one.
const SHELVES: usize = 32;

/// Buffers that are used again from update to update, so that none is allocated twice.
pub struct Scratch<S = f32> {
    /// A thread finds what it has laid down itself: that is in its cache, and nobody else is at its shelf.
    /// On the heap: whoever holds a `Scratch` need not be aligned as they are, which Python's objects are not.
    shelves: Box<[Shelf<S>]>,
    matrices: Mutex<Vec<Matrix<S>>>,
}

/// Buffers by their [class](class_for): many are taken for every tile, and none is searched for. A shelf has lines of the
/// cache for itself, which come in pairs.
#[repr(align(128))]
struct Shelf<S>(Mutex<Vec<Vec<Vec<S>>>>);

impl<S> Shelf<S> {
    fn open(&self) -> MutexGuard<'_, Vec<Vec<Vec<S>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer of that class or a little larger.
    fn take(&self, class: usize) -> Option<Vec<S>> {
        self.open().iter_mut().skip(class).take(LARGER).find_map(Vec::pop)
    }
}

/// The shelf of this thread.
fn own_shelf() -> usize {
    rayon::current_thread_index().map_or(0, |thread| thread % SHELVES)
}

impl<S: Scalar> Default for Scratch<S> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: Scalar> Scratch<S> {
    /// No buffers yet.
    pub fn new() -> Self {
        let shelf = |_| Shelf(Mutex::new(vec![]));
        Self { shelves: (0..SHELVES).map(shelf).collect(), matrices: Mutex::new(vec![]) }
    }

    /// A buffer of `len` numbers, whatever they are; it comes back when dropped.
    pub(crate) fn take(&self, len: usize) -> Spare<'_, S> {
        let (class, own) = (class_for(len + LINE), own_shelf());
        // What others have laid down is taken before more is allocated.
        let known = (0..SHELVES).find_map(|i| self.shelves[(own + i) % SHELVES].take(class));
        let mut buffer = known.unwrap_or_else(|| {
            // Zeros that the system has: what nobody takes of the room stays with it.
            let buffer = vec![S::ZERO; room_of(class)];
            ask_for_large_pages(&buffer);
            buffer
        });
        if cfg!(debug_assertions) {
            // Whoever reads what it has not written shall see it.
            buffer.fill(S::of(f64::NAN));
        }
        // Rows that start where a line of the cache does touch fewer of them.
        let start = buffer.as_ptr().align_offset(LINE * size_of::<S>()).min(LINE);
        Spare { buffer, range: start..start + len, home: self }
    }

    /// A matrix of whatever numbers; it comes back when dropped.
    pub(crate) fn matrix(&self, rows: usize, cols: usize) -> SpareMatrix<'_, S> {
        let mut free = self.matrices.lock().unwrap_or_else(PoisonError::into_inner);
        let mut matrix = fitting(&mut free, rows * cols, Matrix::room).unwrap_or_default();
        drop(free);
        matrix.reshape(rows, cols);
        if cfg!(debug_assertions) {
            matrix.as_mut_slice().fill(S::of(f64::NAN));
        }
        SpareMatrix { matrix, home: self }
    }

    /// A buffer of `len` zeros.
    pub(crate) fn zeros(&self, len: usize) -> Spare<'_, S> {
        let mut buffer = self.take(len);
        buffer.fill(S::ZERO);
        buffer
    }
}

/// Classes of larger buffers that may serve: up to twice as long.
const LARGER: usize = 4;

/// The class of the smallest buffers that have `room`: there are four per power of two.
fn class_for(room: usize) -> usize {
    let octave = (room.max(4).ilog2() - 2) as usize;
    4 * octave + room.max(4).div_ceil(1 << octave) - 4
}

/// Length of the buffers of a class.
fn room_of(class: usize) -> usize {
    (4 + class % 4) << (class / 4)
}

/// Takes out the one that came back last of those that fit well, for it is in cache; else the
/// smallest that is large enough, else the largest, so that few ever grow.
fn fitting<T>(free: &mut Vec<T>, room: usize, size: impl Fn(&T) -> usize) -> Option<T> {
    let well = room..=room + room / 4;
    let best = (0..free.len()).rev().find(|&i| well.contains(&size(&free[i]))).or_else(|| {
        (0..free.len()).min_by_key(|&i| {
            let size = size(&free[i]);
            (size < room, size.abs_diff(room))
        })
    });
    best.map(|place| free.swap_remove(place))
}

/// Lets the system back a large buffer that is still to be filled with large pages: rows of
/// neighbours lie anywhere in it, and with small pages every one of them needs a look-up.
fn ask_for_large_pages<S>(buffer: &Vec<S>) {
    #[cfg(target_os = "linux")]
    {
        const PAGE: usize = 1 << 21;
        let start = buffer.as_ptr().cast_mut().cast::<u8>();
        let skip = start.align_offset(PAGE);
        let bytes = (buffer.capacity() * size_of::<S>()).saturating_sub(skip) / PAGE * PAGE;
        if bytes > 0 {
            // SAFETY: the range lies within the buffer, and advice changes no contents. That it is
            // not taken is no failure.
            unsafe { libc::madvise(start.wrapping_add(skip).cast(), bytes, libc::MADV_HUGEPAGE) };
        }
    }
    let _ = buffer;
}

impl<S> fmt::Debug for Scratch<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Scratch").finish_non_exhaustive()
    }
}

/// A copy has its own buffers, and at first none.
impl<S: Scalar> Clone for Scratch<S> {
    fn clone(&self) -> Self {
        Self::new()
    }
}

/// A buffer on loan from a [`Scratch`].
pub(crate) struct Spare<'a, S: Scalar> {
    /// It never shrinks, so that numbers are not written twice only to exist.
    buffer: Vec<S>,
    range: Range<usize>,
    home: &'a Scratch<S>,
}

impl<S: Scalar> Deref for Spare<'_, S> {
    type Target = [S];
    fn deref(&self) -> &[S] {
        &self.buffer[self.range.clone()]
    }
}

impl<S: Scalar> DerefMut for Spare<'_, S> {
    fn deref_mut(&mut self) -> &mut [S] {
        &mut self.buffer[self.range.clone()]
    }
}

impl<S: Scalar> Drop for Spare<'_, S> {
    fn drop(&mut self) {
        let buffer = std::mem::take(&mut self.buffer);
        let class = class_for(buffer.len());
        let mut free = self.home.shelves[own_shelf()].open();
        if free.len() <= class {
            free.resize_with(class + 1, Vec::new);
        }
        free[class].push(buffer);
    }
}

/// A matrix on loan from a [`Scratch`].
pub(crate) struct SpareMatrix<'a, S: Scalar> {
    matrix: Matrix<S>,
    home: &'a Scratch<S>,
}

impl<S: Scalar> Deref for SpareMatrix<'_, S> {
    type Target = Matrix<S>;
    fn deref(&self) -> &Matrix<S> {
        &self.matrix
    }
}

impl<S: Scalar> DerefMut for SpareMatrix<'_, S> {
    fn deref_mut(&mut self) -> &mut Matrix<S> {
        &mut self.matrix
    }
}

impl<S: Scalar> Drop for SpareMatrix<'_, S> {
    fn drop(&mut self) {
        let matrix = std::mem::take(&mut self.matrix);
        self.home.matrices.lock().unwrap_or_else(PoisonError::into_inner).push(matrix);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_room_and_wastes_at_most_a_quarter() {
        for room in 4..5000 {
            let class = class_for(room);
            let wide = room_of(class);
            assert!(room <= wide && 4 * wide <= 5 * room, "{wide} for {room}");
            assert_eq!(class_for(wide), class);
        }
    }

    #[test]
    fn matrices_of_other_shapes_share_their_room() {
        let scratch = Scratch::<f32>::new();
        for rows in (1..100).rev() {
            drop((scratch.matrix(rows, 3), scratch.matrix(rows, 2)));
        }
        let matrices = scratch.matrices.lock().unwrap();
        let room: usize = matrices.iter().map(Matrix::room).sum();
        assert!(matrices.len() == 2 && room <= 99 * 5, "{} of {room}", matrices.len());
    }
}
