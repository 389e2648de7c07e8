//! Estimates without the noise that other runs explain.

use super::*;
use crate::testing::{grid, history};
use io_autotune_model::{RecentRun, Tested};

/// Runs of the default of a hundred seconds and of another parametrization of half as many, times
/// what other runs took, with a little noise of their own.
fn busy(space: &Space, is_told: bool) -> History {
    let mut of_each =
        [0, 4].map(|level| Tested::new(space.parametrization(&Point(vec![level, 0])), 0));
    for ordinal in 0..24 {
        let place = usize::try_from(ordinal % 2).unwrap();
        let others = [1.0, 1.1, 1.5, 0.8, 2.0][usize::try_from(ordinal % 5).unwrap()];
        let own = [1.01, 0.99, 1.0][usize::try_from(ordinal % 3).unwrap()];
        let run = RecentRun::new(ordinal, [100.0, 50.0][place] * others * own);
        of_each[place]
            .record_run(run.beside(is_told.then_some(others)))
            .unwrap();
    }
    history(of_each.to_vec(), 24, 24)
}

#[test]
fn the_default_and_the_recommended_are_estimated_where_others_fare_as_ever() {
    let space = grid(&[5, 2]);
    let settings = Settings::default();
    let epoch = Epoch::new(&space, &settings, 0);
    let known = busy(&space, true);
    let found = epoch.cleaned_estimates(&known).unwrap();
    let recommended = found.recommended.unwrap();
    for (estimate, seconds) in [(found.default, 100.0), (recommended, 50.0)] {
        assert!((estimate.mean / seconds - 1.0).abs() < 0.03, "{estimate:?}");
        assert!(
            estimate.low < seconds && seconds < estimate.high,
            "{estimate:?}"
        );
        assert!(estimate.high / estimate.low < 1.2, "{estimate:?}");
    }
    assert!(found.share > 0.9, "others explain {}", found.share);
    let default = epoch.cleaned(&space.default(), &known).unwrap();
    assert_eq!(
        (default.estimate, default.share),
        (found.default, found.share)
    );
}

#[test]
fn where_nothing_is_known_of_others_nothing_is_taken_out() {
    let space = grid(&[5, 2]);
    let settings = Settings::default();
    let epoch = Epoch::new(&space, &settings, 0);
    let untold = busy(&space, false);
    assert_eq!(epoch.cleaned_estimates(&untold), None);
    assert_eq!(epoch.cleaned(&space.default(), &untold), None);
    assert_eq!(epoch.cleaned_estimates(&History::default()), None);
}
