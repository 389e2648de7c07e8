//! A synthetic stand-in for the unpublished burst-buffer data of the 2020 paper.
//!
//! 540 parametrizations (table III, thresholds in steps of 10 %) with 16 runs each. They match what
//! the paper reports: the statistics of table IV, the optimum, the default's distance from it,
//! noise that varies over the space, one outlier in 16 runs. The rest is invented: it is for
//! comparing methods and says nothing about a real burst buffer.

use std::fmt::Write;

use crate::dataset::Draw;

const WORKERS: [u32; 6] = [2, 4, 6, 8, 10, 12];
const DESTAGERS: [u32; 6] = [2, 4, 6, 8, 10, 12];
const CACHE_GB: [u32; 3] = [40, 50, 60];
const THRESHOLD: [u32; 5] = [50, 60, 70, 80, 90];
/// Runs of each parametrization (section VIII-B).
const RUNS: usize = 16;
/// The seed of the table that the project ships.
pub const SEED: u64 = 2020;

/// Mean seconds of the best, next and worst parametrization; the paper has 151.75 and 327.37.
const BEST: f64 = 153.6;
const NEXT: f64 = 154.2;
const WORST: f64 = 325.0;
/// The least and greatest raw times of table IV, seconds.
const QUICKEST: f64 = 136.0;
const SLOWEST: f64 = 625.0;
/// The share of runs that other jobs slow down.
const OUTLIERS: f64 = 0.07;
/// The share of outliers that are extreme, for means above this many seconds.
const EXTREME: f64 = 0.2;
const EXTREME_FROM: f64 = 215.0;

#[derive(Clone, Copy)]
struct Setting {
    workers: u32,
    destagers: u32,
    cache_gb: u32,
    threshold: u32,
}

impl Setting {
    fn all() -> impl Iterator<Item = Setting> {
        WORKERS.into_iter().flat_map(|workers| {
            DESTAGERS.into_iter().flat_map(move |destagers| {
                CACHE_GB.into_iter().flat_map(move |cache_gb| {
                    THRESHOLD.into_iter().map(move |threshold| Setting {
                        workers,
                        destagers,
                        cache_gb,
                        threshold,
                    })
                })
            })
        })
    }

    /// How late the cache is cleaned, from 0 to 1.
    fn full(self) -> f64 {
        (f64::from(self.threshold) - 50.0) / 40.0
    }

    /// The order of the parametrizations: 0 is the best, at 10 workers, 8 destagers, 60 GB, 50 %.
    /// Few threads are slow, many contend for cores; small or late-cleaned caches need destagers.
    fn load(self) -> f64 {
        let (workers, destagers) = (f64::from(self.workers), f64::from(self.destagers));
        let few_workers = (10.0 - workers).max(0.0) / 8.0;
        let few_destagers = (8.0 - destagers).max(0.0) / 6.0;
        let many_destagers = (destagers - 8.0).max(0.0) / 4.0;
        let many_workers = if workers > 10.0 { 1.0 } else { 0.0 };
        let contention = (workers + destagers - 18.0).max(0.0) / 6.0;
        let small = (60.0 - f64::from(self.cache_gb)) / 20.0;
        let full = self.full();
        few_workers.powf(1.5)
            + 0.9 * few_destagers.powf(1.5)
            + 0.22 * many_destagers
            + 0.12 * many_workers
            + 0.65 * contention
            + 0.45 * small
            + 0.70 * full
            + 0.5 * full * few_destagers
            + 0.35 * small * few_destagers
            + 0.4 * few_workers * few_destagers * (1.0 - few_destagers)
    }

    /// The scatter of single runs: larger under contention and with slower means.
    fn noise(self, mean: f64) -> f64 {
        let threads = f64::from(self.workers + self.destagers);
        let contention = 0.5 * self.full() + 0.5 * (threads - 12.0).max(0.0) / 12.0;
        0.03 + 0.47 * contention * ((mean - 150.0) / 60.0).min(1.0)
    }
}

/// The mean, in seconds, at a share of the way from the best to the worst. The shape is fitted to
/// mean, standard deviation and median of the averaged times in table IV.
fn mean_at(share: f64) -> f64 {
    let shape = 0.4496 * share.powf(1.106) + 0.5504 * share.powf(14.976);
    NEXT + (WORST - NEXT) * shape
}

fn runs(setting: Setting, mean: f64, place: u64, seed: u64) -> [f64; RUNS] {
    let noise = setting.noise(mean);
    let room = 1.0 - 139.0 / mean;
    let mut factors = [0.0; RUNS];
    for (nth, factor) in factors.iter_mut().enumerate() {
        let draw = Draw::new(seed, place, nth as u64);
        // Standard deviation one half, within 1.5 of 0; there is less room to the fast side.
        let deviation = draw.unit(1) + draw.unit(2) + draw.unit(3) - 1.5;
        *factor = if deviation > 0.0 {
            1.0 + 2.0 * noise * deviation
        } else {
            1.0 + deviation / 1.5 * (1.2 * noise).min(room)
        };
        let luck = draw.unit(4);
        if luck < OUTLIERS * EXTREME && mean >= EXTREME_FROM {
            *factor *= 1.7 + 0.5 * draw.unit(5);
        } else if luck < OUTLIERS {
            *factor *= 1.35 + 0.2 * draw.unit(5) + 0.1 * draw.unit(6);
        }
    }
    let average = factors.iter().sum::<f64>() / RUNS as f64;
    factors.map(|factor| {
        let elapsed = (factor / average * mean).min(SLOWEST);
        if elapsed > QUICKEST {
            elapsed
        } else {
            QUICKEST + 0.1 * (QUICKEST - elapsed)
        }
    })
}

/// The table's JSON file.
pub fn json() -> String {
    let list = |values: &[u32]| {
        let words: Vec<String> = values.iter().map(u32::to_string).collect();
        words.join(", ")
    };
    format!(
        "{{\n \"name\": \"burst-buffer\",\n \"parameters\": [\n  \
         {{\"name\": \"workers\", \"kind\": \"int\", \"values\": [{}]}},\n  \
         {{\"name\": \"destagers\", \"kind\": \"int\", \"values\": [{}]}},\n  \
         {{\"name\": \"cache_gb\", \"kind\": \"int\", \"values\": [{}]}},\n  \
         {{\"name\": \"threshold\", \"kind\": \"int\", \"values\": [{}]}}\n ],\n \
         \"default\": {{\"workers\": 10, \"destagers\": 10, \"cache_gb\": 60, \"threshold\": 90}},\n \
         \"objective\": \"elapsed seconds; invented, see README.md\"\n}}\n",
        list(&WORKERS),
        list(&DESTAGERS),
        list(&CACHE_GB),
        list(&THRESHOLD),
    )
}

/// The table's CSV file, a pure function of the seed; times in steps of 0.01 s.
pub fn csv(seed: u64) -> String {
    let settings: Vec<Setting> = Setting::all().collect();
    let mut order: Vec<usize> = (0..settings.len()).collect();
    order.sort_by(|a, b| settings[*a].load().total_cmp(&settings[*b].load()));
    let mut means = vec![BEST; settings.len()];
    let worst = (settings.len() - 1) as f64;
    for (rank, place) in order.into_iter().enumerate().skip(1) {
        means[place] = mean_at(rank as f64 / worst);
    }
    let mut text = "workers,destagers,cache_gb,threshold,rep,time\n".to_owned();
    for (place, (setting, mean)) in settings.into_iter().zip(means).enumerate() {
        for (rep, elapsed) in runs(setting, mean, place as u64, seed)
            .into_iter()
            .enumerate()
        {
            let Setting {
                workers,
                destagers,
                cache_gb,
                threshold,
            } = setting;
            // Writing to a string cannot fail.
            let _ = writeln!(
                text,
                "{workers},{destagers},{cache_gb},{threshold},{rep},{elapsed:.2}"
            );
        }
    }
    text
}
