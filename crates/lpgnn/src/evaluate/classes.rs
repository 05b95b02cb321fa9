use crate::Scalar;
use crate::readout::largest;

/// A confusion matrix: counts of pairs of a true and a predicted class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Confusion {
    classes: usize,
    counts: Vec<usize>,
}

/// Precision, recall and F1 of one class.
///
/// From the counts of true positives, false positives and false negatives; 0/0 counts as 0.
#[derive(Clone, Copy, Debug, PartialEq, serde::Serialize, serde::Deserialize)]
pub struct ClassMetrics {
    /// `tp / (tp + fp)`
    pub precision: f64,
    /// `tp / (tp + fn)`
    pub recall: f64,
    /// `2 tp / (2 tp + fp + fn)`
    pub f1: f64,
    /// The support, the number of examples of this class: `tp + fn`.
    pub support: usize,
}

impl Confusion {
    /// The counts of pairs of a true and a predicted class, each below `classes`; others are left
    /// out.
    pub fn new(classes: usize, pairs: impl Iterator<Item = (usize, usize)>) -> Self {
        let mut counts = vec![0; classes * classes];
        for (truth, predicted) in pairs {
            if truth < classes && predicted < classes {
                counts[truth * classes + predicted] += 1;
            }
        }
        Self { classes, counts }
    }

    /// One row per true class, one column per predicted class.
    pub fn rows(&self) -> impl ExactSizeIterator<Item = &[usize]> {
        self.counts.chunks_exact(self.classes.max(1))
    }

    /// The number of pairs.
    pub fn total(&self) -> usize {
        self.counts.iter().sum()
    }

    /// The accuracy; 0 if there are no pairs.
    pub fn accuracy(&self) -> f64 {
        let right: usize = self.rows().enumerate().map(|(class, row)| row[class]).sum();
        ratio(right, self.total())
    }

    /// The balanced accuracy: the mean recall of the classes that occur.
    ///
    /// ```
    /// use lpgnn::evaluate::Confusion;
    ///
    /// // Nine of ten are of class 0, and all are predicted as class 0.
    /// let confusion = Confusion::new(2, (0..10).map(|i| (usize::from(i == 9), 0)));
    /// assert_eq!((confusion.accuracy(), confusion.balanced_accuracy()), (0.9, 0.5));
    /// ```
    pub fn balanced_accuracy(&self) -> f64 {
        let occurring = self.rows().enumerate().filter(|(_, row)| row.iter().sum::<usize>() > 0);
        mean(occurring.map(|(class, row)| ratio(row[class], row.iter().sum())))
    }

    /// Macro F1: the mean of `F1 = 2 tp / (2 tp + fp + fn)` over the classes that occur or are predicted.
    pub fn macro_f1(&self) -> f64 {
        let f1 = |class: usize| {
            let right = self.counts[class * self.classes + class];
            let (truly, taken) = (self.row_sum(class), self.column_sum(class));
            (truly + taken > 0).then(|| ratio(2 * right, truly + taken))
        };
        mean((0..self.classes).filter_map(f1))
    }

    /// Precision, recall and F1 of every class.
    ///
    /// ```
    /// use lpgnn::evaluate::Confusion;
    ///
    /// // Of class 0, two of three are found; one of class 1 is.
    /// let confusion = Confusion::new(2, [(0, 0), (0, 0), (0, 1), (1, 1)].into_iter());
    /// let [zero, one] = confusion.per_class()[..] else { panic!("two classes") };
    /// assert_eq!((zero.precision, zero.recall, zero.support), (1.0, 2.0 / 3.0, 3));
    /// assert_eq!((one.precision, one.recall, one.support), (0.5, 1.0, 1));
    /// ```
    pub fn per_class(&self) -> Vec<ClassMetrics> {
        let metrics = |class: usize| {
            let right = self.counts[class * self.classes + class];
            let (support, predicted) = (self.row_sum(class), self.column_sum(class));
            ClassMetrics {
                precision: ratio(right, predicted),
                recall: ratio(right, support),
                f1: ratio(2 * right, support + predicted),
                support,
            }
        };
        (0..self.classes).map(metrics).collect()
    }

    fn row_sum(&self, class: usize) -> usize {
        self.counts[class * self.classes..][..self.classes].iter().sum()
    }

    fn column_sum(&self, class: usize) -> usize {
        self.rows().map(|row| row[class]).sum()
    }
}

fn ratio(part: usize, whole: usize) -> f64 {
    if whole == 0 { 0.0 } else { part as f64 / whole as f64 }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), x| (sum + x, count + 1.0));
    if count > 0.0 { sum / count } else { 0.0 }
}

/// The area under the ROC curve: the probability that a positive has a higher score than a
/// negative, ties counting half. None unless both occur and every score is a number.
///
/// ```
/// use lpgnn::evaluate::auc;
///
/// let evaluation = [(0.9, true), (0.7, false), (0.6, true), (0.1, false)];
/// assert_eq!(auc(evaluation.into_iter()), Some(0.75));
/// ```
pub fn auc(evaluation: impl Iterator<Item = (f64, bool)>) -> Option<f64> {
    let mut evaluation: Vec<(f64, bool)> = evaluation.collect();
    let positives = evaluation.iter().filter(|(_, positive)| *positive).count();
    let negatives = evaluation.len() - positives;
    if positives == 0 || negatives == 0 || evaluation.iter().any(|(score, _)| score.is_nan()) {
        return None;
    }
    evaluation.sort_by(|a, b| a.0.total_cmp(&b.0));
    // Σ over positives of the negatives below, and half of those level with it
    let (mut wins, mut below) = (0.0, 0.0);
    for level in evaluation.chunk_by(|a, b| a.0.total_cmp(&b.0).is_eq()) {
        let up = level.iter().filter(|(_, positive)| *positive).count() as f64;
        let down = level.len() as f64 - up;
        wins += up * (below + 0.5 * down);
        below += down;
    }
    Some(wins / (positives as f64 * negatives as f64))
}

/// `softmax(y)`: the probability of every class.
pub fn probabilities<S: Scalar>(y: &[S]) -> Vec<f64> {
    if y.is_empty() {
        return vec![];
    }
    let shift = y[largest(y)].f64();
    let powers: Vec<f64> = y.iter().map(|y| (y.f64() - shift).exp()).collect();
    let total: f64 = powers.iter().sum();
    powers.into_iter().map(|power| power / total).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} where {expected} was expected");
    }

    #[test]
    fn known_answers_of_three_classes() {
        // truth → predicted: 0→0 ×3, 0→1, 1→1 ×2, 2→0, 2→2
        let pairs = [(0, 0), (0, 0), (0, 0), (0, 1), (1, 1), (1, 1), (2, 0), (2, 2)];
        let confusion = Confusion::new(3, pairs.into_iter());
        let rows: Vec<_> = confusion.rows().collect();
        assert_eq!(rows, [&[3, 1, 0][..], &[0, 2, 0], &[1, 0, 1]]);
        close(confusion.accuracy(), 6.0 / 8.0);
        close(confusion.balanced_accuracy(), (0.75 + 1.0 + 0.5) / 3.0);
        // F1: 6/8, 4/5, 2/3
        close(confusion.macro_f1(), (0.75 + 0.8 + 2.0 / 3.0) / 3.0);
    }

    #[test]
    fn a_class_that_never_occurs_does_not_count() {
        let confusion = Confusion::new(3, [(0, 0), (1, 1)].into_iter());
        close(confusion.balanced_accuracy(), 1.0);
        close(confusion.macro_f1(), 1.0);
    }

    #[test]
    fn ties_count_half_in_auc() {
        assert_eq!(auc([(0.5, true), (0.5, false)].into_iter()), Some(0.5));
        assert_eq!(auc([(0.5, true)].into_iter()), None);
        assert_eq!(auc([(f64::NAN, true), (0.5, false)].into_iter()), None);
        // Of the six pairs, the positives win 0.8 > 0.4, 0.8 > 0.2, 0.4 > 0.2 and tie once.
        let evaluation = [(0.8, true), (0.4, true), (0.4, false), (0.2, false), (0.9, false)];
        close(auc(evaluation.into_iter()).unwrap(), 3.5 / 6.0);
    }

    #[test]
    fn probabilities_do_not_overflow() {
        let p = probabilities(&[1000.0_f32, 1000.0, -1000.0]);
        close(p[0], 0.5);
        close(p.iter().sum(), 1.0);
    }
}
