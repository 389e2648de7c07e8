//! Ineffective parameters: the application or the library has another value in force than runs get.

use io_autotune_model::ObservedValue;
use io_autotune_protocol::ObservedParameter;
use serde::Deserialize;
use serde_json::Value;

pub(crate) fn observed_values(reports: &[Value]) -> Vec<ObservedValue> {
    // Reads only this field: every run passes here, and most have none.
    let field = |report| Value::get(report, "observed").or_else(|| report.get("told"));
    let observed = reports.iter().filter_map(field);
    observed
        .filter_map(|values| Vec::<ObservedParameter>::deserialize(values).ok())
        .flatten()
        .map(|observed| ObservedValue {
            parameter: observed.parameter,
            name: observed.name,
            given: observed.asked,
            in_force: observed.in_force,
            as_given: observed.as_asked,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn report(asked: &str) -> Value {
        let told = |parameter: &str, asked: &str, in_force: &str| {
            json!({ "parameter": parameter, "name": format!("romio_{parameter}"), "asked": asked,
                    "in_force": in_force, "as_asked": asked == in_force })
        };
        json!({
            "job": { "cluster": "c", "job_id": 1, "restart_count": 0, "uid": 1, "gid": 1, "node": "n1", "nodes": 1,
                     "partition": "main", "cpus_per_node": "8" },
            "request": {},
            "applied": { "kind": "default" },
            "steps": [],
            "told": [told("sieve", asked, "disable"), told("nodes", "4", "4")],
        })
    }

    #[test]
    fn what_nodes_were_told_is_read_and_what_is_no_report_is_passed_over() {
        let values = observed_values(&[report("enable"), json!("not a report")]);
        let [sieve, nodes] = &values[..] else {
            panic!("two parameters: {values:?}")
        };
        assert_eq!((sieve.parameter.as_str(), sieve.as_given), ("sieve", false));
        assert_eq!(sieve.given.as_deref(), Some("enable"));
        assert_eq!(sieve.in_force, "disable");
        assert!(nodes.as_given);
    }
}
