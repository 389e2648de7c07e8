//! What is believed of an epoch: the surrogate of what is known, runs in flight included, and what
//! follows from it for the points that ran. The method `default` goes by it.

use crate::space::Point;
use crate::surrogate::ensemble::Ensemble;
use crate::surrogate::{Observation, Scatter};
use crate::view::{Known, View};

/// The surrogate is fitted to at most so many points.
const MOST_POINTS: usize = 96;
/// Of those, so many are the best; the others are spread over the rest.
const BEST_POINTS: usize = 64;
/// From so many runs on, a point's slow runs are judged by its quick ones.
const OUTLIERS_FROM: usize = 3;
/// A run is an outlier beyond the median by so many times the way from the quickest run to the
/// median, and by this much in the logarithm at least; it then counts as if it were there.
const OUTLIER_REACH: f64 = 2.0;
const OUTLIER_LEAST: f64 = 0.1;

/// What the surrogate says of an epoch.
#[derive(Debug)]
pub(crate) struct Belief {
    pub(crate) surrogate: Ensemble,
    /// Measured points, the lowest prediction first; at least one.
    pub(crate) ranked: Vec<Point>,
    /// The lowest prediction at a measured point, log seconds.
    pub(crate) incumbent: f64,
    /// The prediction at the default, log seconds.
    pub(crate) default: f64,
}

impl Belief {
    /// None before a run has counted. [`View::belief`] keeps it.
    pub(crate) fn new(view: &View<'_>) -> Option<Self> {
        let known: Vec<(&Point, &Known)> = view.iter().collect();
        let (observations, scatter) = observe(&known, &view.default);
        let fitted = Ensemble::fit(view.space, &observations, scatter)?;
        let flights: Vec<(Point, f64)> = known
            .iter()
            .filter(|(_, known)| known.in_flight > 0)
            .take(MOST_POINTS)
            .map(|(point, known)| ((*point).clone(), known.in_flight as f64))
            .collect();
        let surrogate = if flights.is_empty() {
            fitted
        } else {
            fitted.believing(view.space, &observations, scatter, &flights)?
        };
        let points: Vec<Point> = observations.into_iter().map(|o| o.point).collect();
        let means = surrogate.predict_all(&points).into_iter().map(|p| p.mean);
        let mut ranked: Vec<(f64, Point)> = means.zip(points).collect();
        ranked.sort_by(|(a, point), (b, other)| a.total_cmp(b).then_with(|| point.cmp(other)));
        Some(Belief {
            incumbent: ranked.first()?.0,
            default: surrogate.predict(&view.default).mean,
            ranked: ranked.into_iter().map(|(_, point)| point).collect(),
            surrogate,
        })
    }
}

/// The points that the surrogate is fitted to, and how their runs scatter.
fn observe(known: &[(&Point, &Known)], default: &Point) -> (Vec<Observation>, Scatter) {
    let mut scatter = Scatter::default();
    let mut observations: Vec<Observation> = known
        .iter()
        .filter_map(|(point, known)| {
            let (log_mean, runs) = log_mean(known, &mut scatter)?;
            Some(Observation {
                point: (*point).clone(),
                log_mean,
                runs,
            })
        })
        .collect();
    if observations.len() > MOST_POINTS {
        observations.sort_by(|a, b| a.log_mean.total_cmp(&b.log_mean));
        let rest = observations.split_off(BEST_POINTS);
        let every = rest.len().div_ceil(MOST_POINTS - BEST_POINTS);
        observations.extend(
            rest.into_iter()
                .enumerate()
                .filter(|(index, o)| index % every == 0 || o.point == *default)
                .map(|(_, o)| o),
        );
        observations.sort_by(|a, b| a.point.cmp(&b.point));
    }
    (observations, scatter)
}

/// The mean log elapsed of a point's latest runs and their number; none where nothing is known. Slow outliers are pulled in,
/// and runs that were cut short raise the mean by as much as they raise the estimate.
fn log_mean(known: &Known, scatter: &mut Scatter) -> Option<(f64, f64)> {
    let estimate = known.mean()?;
    let mut logs = known.logs().to_vec();
    if logs.is_empty() || known.count() == 0 {
        return (known.censored() > 0 && known.count() == 0).then_some((estimate.ln(), 1.0));
    }
    if logs.len() >= OUTLIERS_FROM {
        let median = logs[logs.len() / 2];
        let fence = median + (OUTLIER_REACH * (median - logs[0])).max(OUTLIER_LEAST);
        for log in &mut logs {
            *log = log.min(fence);
        }
    }
    let runs = logs.len() as f64;
    let mean = logs.iter().sum::<f64>() / runs;
    scatter.squares += logs
        .iter()
        .map(|log| (log - mean) * (log - mean))
        .sum::<f64>();
    scatter.degrees += runs - 1.0;
    Some((mean + (estimate / known.elapsed.mean).ln().max(0.0), runs))
}
