//! Which accelerator and which application a job is of, by the files of the site.
