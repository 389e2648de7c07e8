//! The mean elapsed of a parametrization when its time limit ended some runs. A run cut short after
//! b seconds is *censored*: it would have taken at least b. Leaving it out, or taking a small b as
//! its time, would make a slow parametrization look fast.

/// The mean elapsed, seconds, of `count` ended runs with mean `mean` and of runs censored at the
/// bounds `descending`: the solution E of
///
/// ```text
/// E = (count * mean + sum of max(b, E) over the bounds) / (count + number of bounds)
/// ```
///
/// This is self-consistency (Efron 1967, "The two sample problem with censored data", Proc. Fifth
/// Berkeley Symposium 4, 831-853; Kaplan and Meier 1958, JASA 53, 457-481, for a whole
/// distribution; Schmee and Hahn 1979, Technometrics 21, 417-432, for regression), with the least
/// time of a censored run instead of its mean. E is biased low, a further bound never lowers it,
/// and it needs only `count` and `mean` of the ended runs. Two to five runs give neither the
/// distribution's shape, which Tobin's model (1958) needs, nor Kaplan and Meier's mean, which does
/// not exist if the longest run is censored.
///
/// E is the largest of the means over the ended runs and the j longest bounds, j = 0, 1, ...: a
/// bound raises the mean of what precedes it exactly if it exceeds it.
pub fn with_bounds(count: u64, mean: f64, descending: &[f64]) -> f64 {
    let mut estimate = mean;
    let mut runs = count as f64;
    for bound in descending {
        if *bound <= estimate {
            break;
        }
        runs += 1.0;
        // A running mean, because the sum of all may overflow.
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
        // A bound below the average run time says nothing.
        assert_eq!(with_bounds(3, 10.0, &[10.0, 9.0, 1.0]), 10.0);
        // (3 * 10 + 30) / 4 = 15. A second bound of 12 changes nothing, one of 25 does.
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
