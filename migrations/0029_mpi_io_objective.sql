-- Seconds in MPI-IO, by the profiling library: another reading of a run's measures.
alter table epochs
    drop constraint epochs_objective_check,
    add constraint epochs_objective_check check
        (objective ~ '^(elapsed|marked_seconds|mpi_io_seconds|objective\.[A-Za-z][A-Za-z0-9_-]{0,31}( maximised)?)$');
