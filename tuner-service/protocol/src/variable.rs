//! The environment variables that a job may be given.

/// Returns true if root may set a variable of this name in a job's environment. Names that affect
/// loaders, shells, interpreters, launchers or Slurm are refused. Keep it equal to the plugin's
/// `ioat_job_env_allows` (`spank-plugin/src/job_env.c`).
#[must_use]
pub fn is_deliverable_variable(name: &str) -> bool {
    const REFUSED: [&str; 17] = [
        "BASH_ENV",
        "CDPATH",
        "ENV",
        "GCONV_PATH",
        "GLIBC_TUNABLES",
        "HDF5_PLUGIN_PATH",
        "HOME",
        "IFS",
        "LOGNAME",
        "NLSPATH",
        "NODE_OPTIONS",
        "PATH",
        "PS4",
        "SHELL",
        "SHELLOPTS",
        "TMPDIR",
        "USER",
    ];
    const REFUSED_PREFIXES: [&str; 11] = [
        "IO_AUTOTUNE",
        "LD_",
        "OMPI_MCA_mca_",
        "OMPI_MCA_orte_",
        "OMPI_MCA_plm",
        "PERL",
        "PYTHON",
        "RUBY",
        "SLURM",
        "SPANK_",
        "_SLURM",
    ];
    name.len() <= 128
        && name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !REFUSED.contains(&name)
        && !REFUSED_PREFIXES
            .iter()
            .any(|prefix| name.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accelerators_variables_are_delivered_and_dangerous_ones_never() {
        for name in [
            "ROMIO_HINTS",
            "OMPI_MCA_io_ompio_grouping_option",
            "UNIFYFS_LOGIO_CHUNK_SIZE",
        ] {
            assert!(is_deliverable_variable(name), "{name}");
        }
        for name in [
            "",
            "1A",
            "A B",
            "LD_PRELOAD",
            "PATH",
            "SLURM_CONF",
            "IO_AUTOTUNE_SET",
            "PYTHONPATH",
            "OMPI_MCA_mca_base_component_path",
            "OMPI_MCA_plm_rsh_agent",
            "HDF5_PLUGIN_PATH",
        ] {
            assert!(!is_deliverable_variable(name), "{name}");
        }
    }
}
