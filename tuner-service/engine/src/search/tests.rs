mod conformance;
mod deep_q_network;
mod failing_region;
mod new_points;
mod unstable_winner;
