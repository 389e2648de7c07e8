// SPDX-License-Identifier: Apache-2.0
/**
 * @file forge.c
 * @brief What any user can do: submit with a SPANK plugin of one's own, and send along whatever one likes.
 *
 * It takes the place of ours at submission, and puts the text of FORGED_REQUEST where ours puts its request.
 */
#include <slurm/spank.h>
#include <stdlib.h>

SPANK_PLUGIN(forge, 1)

/** Slurm calls this in sbatch once all options are read (spank(8)). */
int slurm_spank_init_post_opt(spank_t spank, int argc, char *argv[])
{
	const char *request = getenv("FORGED_REQUEST");

	(void)argc;
	(void)argv;
	if (spank_context() != S_CTX_ALLOCATOR || !request)
		return 0;
	return spank_job_control_setenv(spank, "IO_AUTOTUNE", request, 1) == ESPANK_SUCCESS ? 0 : -1;
}
