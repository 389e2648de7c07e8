//! The methods of the papers, each with its settings, as published. A method *is* its table of
//! settings: it keeps no other state. `docs/papers/methods.md` says what each takes from its
//! paper, and what the paper leaves open.
//!
//! To add a method, add a folder here, and its line in [`published_methods`].

#![forbid(unsafe_code)]

pub mod alabed2021;
mod annealing;
pub mod cao2018;
mod revisits;
pub mod robert2019;
pub mod robert2020;

pub use revisits::Revisits;

/// Calls a macro with every published method, in the order in which they are listed: its
/// description, its name in code and as a field, its type, and its name in the configuration.
#[macro_export]
macro_rules! published_methods {
    ($then:ident) => {
        $then! {
            /// Robert, Zertal and Vaumourin 2020: a genetic algorithm with the noise
            /// reductions of table V.
            Robert2020, robert2020: $crate::robert2020::Robert2020, "robert2020";
            /// Robert, Zertal and Goret 2019: a surrogate model with an acquisition function.
            Robert2019Surrogate, robert2019_surrogate: $crate::robert2019::Robert2019Surrogate,
                "robert2019-surrogate";
            /// Robert, Zertal and Goret 2019: simulated annealing.
            Robert2019Annealing, robert2019_annealing: $crate::robert2019::Robert2019Annealing,
                "robert2019-annealing";
            /// Cao, Tarasov, Tiwari and Zadok 2018: simulated annealing.
            Cao2018Annealing, cao2018_annealing: $crate::cao2018::Cao2018Annealing,
                "cao2018-annealing";
            /// Cao, Tarasov, Tiwari and Zadok 2018: a genetic algorithm in generations.
            Cao2018Genetic, cao2018_genetic: $crate::cao2018::Cao2018Genetic, "cao2018-genetic";
            /// Cao, Tarasov, Tiwari and Zadok 2018: Bayesian optimisation.
            Cao2018Bayesian, cao2018_bayesian: $crate::cao2018::Cao2018Bayesian, "cao2018-bayesian";
            /// Cao, Tarasov, Tiwari and Zadok 2018: a deep Q-network.
            Cao2018Dqn, cao2018_dqn: $crate::cao2018::Cao2018Dqn, "cao2018-dqn";
            /// Alabed and Yoneki 2021: a multi-task Gaussian process of elapsed and measures.
            Alabed2021Multitask, alabed2021_multitask: $crate::alabed2021::Alabed2021Multitask,
                "alabed2021-multitask";
        }
    };
}
