mod conformance;
mod deep_q_network;
