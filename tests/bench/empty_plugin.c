/* A SPANK plugin that has nothing in it: what loading one costs a command of Slurm's. */
#include <slurm/spank.h>

SPANK_PLUGIN(empty, 1)
