mod conformance;
mod deep_q_network;
mod failing_region;
mod unstable_winner;
