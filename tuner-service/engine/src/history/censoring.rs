//! What a parametrization's runs take on average, when some were cut short by their time limit.
//!
//! A run cut short after b seconds is *censored*: it would have taken at least b. Left out, it makes
//! a slow parametrization look fast, because it is the slow runs that are cut short; taken as a run
//! of b seconds, likewise where b is small.

/// The mean elapsed, seconds, of `count` runs of mean `mean` that ended and of runs cut short after
/// `bounds` seconds: the solution E of
///
/// ```text
/// E = (count * mean + sum of max(b, E) over the bounds) / (count + number of bounds)
/// ```
///
/// so a run cut short is taken for one of its bound, or of the estimate itself where that is longer.
/// This is self-consistency (Efron 1967, "The two sample problem with censored data", Proc. Fifth
/// Berkeley Symposium 4, 831-853, of which the estimator of Kaplan and Meier 1958, JASA 53, 457-481,
/// is the solution for a whole distribution; Schmee and Hahn 1979, Technometrics 21, 417-432, for
/// regression) with the least that a run cut short can have taken, where those take what it takes on
/// average. The result is too low rather than too high, and has what the choice of a parametrization
/// needs: a further bound never lowers it, and nothing but `count` and `mean` is needed of the other
/// runs. Tobin's model (1958) would need the distribution's shape, and Kaplan and Meier's mean does
/// not exist if the longest run was cut short; neither can be had from two to five runs.
///
/// E is the largest of the means over the runs that ended and the j longest bounds, j = 0, 1, ...: a
/// bound above the mean of what precedes it raises that mean, and one below lowers it.
///
/// `descending` are the bounds, the longest first. Without any the answer is `mean` itself.
pub(crate) fn with_bounds(count: u64, mean: f64, descending: &[f64]) -> f64 {
    let mut estimate = mean;
    let mut runs = count as f64;
    for bound in descending {
        if *bound <= estimate {
            break;
        }
        runs += 1.0;
        // Not the sum over the number: that can exceed the largest number.
        estimate += (*bound - estimate) / runs;
    }
    estimate
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!(with_bounds(3, 10.0, &[]), 10.0);
        // A limit shorter than what a run takes on average says nothing.
        assert_eq!(with_bounds(3, 10.0, &[10.0, 9.0, 1.0]), 10.0);
        // (3 * 10 + 30) / 4 = 15; a second bound of 12 says nothing more, one of 25 does.
        assert_eq!(with_bounds(3, 10.0, &[30.0]), 15.0);
        assert_eq!(with_bounds(3, 10.0, &[30.0, 12.0]), 15.0);
        assert_eq!(with_bounds(3, 10.0, &[30.0, 25.0]), 17.0);
        assert!(with_bounds(u64::MAX, f64::MAX, &[f64::MAX]).is_finite());
    }

    proptest! {
        #[test]
        fn it_solves_its_equation_and_a_bound_never_lowers_it(
            count in 1_u64..40,
            mean in 1.0..1000.0_f64,
            mut bounds in prop::collection::vec(1.0..3000.0_f64, 0..12),
            further in 1.0..3000.0_f64,
        ) {
            let sorted = |bounds: &mut Vec<f64>| bounds.sort_by(|a, b| b.total_cmp(a));
            sorted(&mut bounds);
            let estimate = with_bounds(count, mean, &bounds);
            let imputed: f64 = bounds.iter().map(|bound| bound.max(estimate)).sum();
            let runs = count as f64 + bounds.len() as f64;
            let right = (count as f64 * mean + imputed) / runs;
            prop_assert!((estimate - right).abs() < 1e-9 * right, "{estimate} is not {right}");
            bounds.push(further);
            sorted(&mut bounds);
            prop_assert!(with_bounds(count, mean, &bounds) >= estimate);
        }
    }
}
