// For a site that removes io-autotune: accepts --io-autotune and ignores it, so that scripts that
// carry the option are still taken. In the place of the plugin's line in plugstack.conf:
//
//   optional /usr/lib/x86_64-linux-gnu/slurm-wlm/io_autotune_stub.so
#include <slurm/spank.h>
#include <stddef.h>

#define EXPORT __attribute__((visibility("default")))

#pragma GCC visibility push(default)
SPANK_PLUGIN(io_autotune, 1)
#pragma GCC visibility pop

static char name[] = "io-autotune";
static char argument[] = "[SPEC]";
static char usage[] = "ignored: I/O is no longer tuned here";

static int ignore(int value, const char *spec, int remote)
{
    (void)value;
    (void)spec;
    (void)remote;
    return 0;
}

EXPORT int slurm_spank_init(spank_t spank, int ac, char **av)
{
    (void)ac;
    (void)av;
    const spank_context_t where = spank_context();
    struct spank_option option = {
        .name = name, .arginfo = argument, .usage = usage, .has_arg = 2, .cb = ignore};
    if (where == S_CTX_ALLOCATOR || where == S_CTX_LOCAL || where == S_CTX_REMOTE)
        spank_option_register(spank, &option);
    return 0;
}
