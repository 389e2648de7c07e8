"""What the accelerator torch-loader gives a job, for the DataLoader of a training script.

    loader = DataLoader(dataset, batch_size=32, shuffle=True, **tuned(num_workers=2))

Data come in the same order with any number of workers. What a dataset draws at random, such as an augmentation, is drawn
by the workers, from a seed for each: with another number of them it is drawn otherwise.
"""

import os


def tuned(**own):
    """Return arguments of a DataLoader: the script's own ones, and on top of them those that the job was given."""
    variables = {"num_workers": "TORCH_LOADER_WORKERS", "prefetch_factor": "TORCH_LOADER_PREFETCH"}
    given = {argument: int(os.environ[name]) for argument, name in variables.items() if name in os.environ}
    arguments = {**own, **given}
    if not arguments.get("num_workers"):
        # Without workers nothing is fetched ahead, and a DataLoader refuses to be told how much.
        arguments.pop("prefetch_factor", None)
    return arguments
