/// The first two principal components of rows, and the share of the variance they have.
///
/// `C = Σ (x − x̄)(x − x̄)ᵀ`; the components are its first two eigenvectors, by power iteration with the
/// first one taken out for the second. Their sign is fixed: the largest entry is positive.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Components {
    /// A row's place along each of the two.
    pub(super) places: [Vec<f64>; 2],
    /// Their share of the variance; 0 if there is none.
    pub(super) explained: f64,
}

/// Power iterations per component.
const ITERATIONS: usize = 300;

impl Components {
    /// Of these rows, all of one length; a row that is not finite counts as the mean.
    pub(super) fn of(rows: &[Vec<f64>]) -> Self {
        let width = rows.first().map_or(0, Vec::len);
        let finite = |row: &&Vec<f64>| row.iter().all(|x| x.is_finite());
        let count = rows.iter().filter(finite).count().max(1) as f64;
        let mean: Vec<f64> = (0..width)
            .map(|i| rows.iter().filter(finite).map(|row| row[i]).sum::<f64>() / count)
            .collect();
        let centred: Vec<Vec<f64>> = rows
            .iter()
            .map(|row| {
                if finite(&row) {
                    row.iter().zip(&mean).map(|(x, m)| x - m).collect()
                } else {
                    vec![0.0; width]
                }
            })
            .collect();
        let total: f64 = centred.iter().flatten().map(|x| x * x).sum();
        let mut covariance = vec![0.0; width * width];
        for row in &centred {
            for (i, x) in row.iter().enumerate() {
                let out = &mut covariance[i * width..(i + 1) * width];
                out.iter_mut().zip(row).for_each(|(c, y)| *c += x * y);
            }
        }
        let mut explained = 0.0;
        let places = [0, 1].map(|_| {
            let (vector, value) = eigenvector(&mut covariance, width);
            explained += value;
            centred.iter().map(|row| dot(row, &vector)).collect()
        });
        Self { places, explained: if total > 0.0 { explained / total } else { 0.0 } }
    }
}

/// The eigenvector of the largest eigenvalue, and that value; the matrix loses them.
fn eigenvector(matrix: &mut [f64], width: usize) -> (Vec<f64>, f64) {
    // No symmetry of the data makes this start orthogonal to what is looked for.
    let mut vector: Vec<f64> = (0..width).map(|i| 1.0 + 0.1 * (i as f64).sin()).collect();
    let mut value = 0.0;
    for _ in 0..ITERATIONS {
        let next: Vec<f64> =
            matrix.chunks_exact(width.max(1)).map(|row| dot(row, &vector)).collect();
        let length = dot(&next, &next).sqrt();
        if length <= f64::MIN_POSITIVE {
            return (vec![0.0; width], 0.0);
        }
        value = length / dot(&vector, &vector).sqrt();
        vector = next.into_iter().map(|x| x / length).collect();
    }
    let largest =
        vector.iter().copied().fold(0.0, |a: f64, b| if b.abs() > a.abs() { b } else { a });
    vector.iter_mut().for_each(|x| *x *= largest.signum());
    for (i, row) in matrix.chunks_exact_mut(width.max(1)).enumerate() {
        row.iter_mut().zip(&vector).for_each(|(c, x)| *c -= value * vector[i] * x);
    }
    (vector, value)
}

fn dot(a: &[f64], b: &[f64]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_on_an_ellipse_are_found_along_its_axes() {
        // Semi-axes 5 and 1, turned by 30 degrees, with an offset in a third direction.
        let (sin, cos) = (0.5, 0.75_f64.sqrt());
        let rows: Vec<Vec<f64>> = (0..200)
            .map(|k| {
                let t = std::f64::consts::TAU * f64::from(k) / 200.0;
                let (a, b) = (5.0 * t.cos(), t.sin());
                vec![cos * a - sin * b + 3.0, sin * a + cos * b - 7.0, 2.0]
            })
            .collect();
        let found = Components::of(&rows);
        let largest = |places: &[f64]| places.iter().copied().fold(0.0, |a: f64, b| a.max(b.abs()));
        assert!((largest(&found.places[0]) - 5.0).abs() < 1e-6);
        assert!((largest(&found.places[1]) - 1.0).abs() < 1e-6);
        assert!((found.explained - 1.0).abs() < 1e-9);
        assert!(found.places[0][0] > 4.9, "the sign is fixed");
    }

    #[test]
    fn nothing_and_what_is_not_finite_have_places() {
        assert!(Components::of(&[]).places.iter().all(Vec::is_empty));
        let found = Components::of(&[vec![f64::NAN, 1.0], vec![1.0, 1.0], vec![-1.0, 1.0]]);
        assert_eq!(found.places[0], [0.0, 1.0, -1.0]);
        assert_eq!(Components::of(&[vec![2.0], vec![2.0]]).explained.to_bits(), 0);
    }
}
