/// A round of successive halving: trials that each train up to one over `share` of their epochs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Round {
    /// What the epochs of a trial are divided by.
    pub share: usize,
    /// How many trials come so far.
    pub trials: usize,
}

/// All trials for a fraction of their epochs, the better ones for more, and so on: of `halving` trials
/// one continues to `halving` times the epochs, and the first round has at least `least` of them.
pub(super) fn rounds(trials: usize, epochs: usize, halving: usize, least: usize) -> Vec<Round> {
    let halving = halving.max(1);
    let mut shares = vec![1_usize];
    let mut left = 1;
    while let Some(&share) = shares.last()
        && halving > 1
        && left < trials
        && epochs / share / halving >= least.max(1)
    {
        shares.push(share * halving);
        left *= halving;
    }
    // The first round has all of them, and every other a share of those.
    let mut keep = trials;
    let round = |share| {
        let round = Round { share, trials: keep };
        keep = keep.div_ceil(halving);
        round
    };
    shares.into_iter().rev().map(round).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_grow_by_the_factor_that_trials_shrink_by() {
        let rounds = |trials, epochs, halving| {
            let rounds = rounds(trials, epochs, halving, 20);
            rounds.iter().map(|round| (round.share, round.trials)).collect::<Vec<_>>()
        };
        assert_eq!(rounds(20, 300, 3), [(9, 20), (3, 7), (1, 3)]);
        assert_eq!(rounds(2, 300, 3), [(3, 2), (1, 1)]);
        assert_eq!(rounds(20, 30, 3), [(1, 20)]);
        assert_eq!(rounds(20, 300, 1), [(1, 20)]);
    }
}
