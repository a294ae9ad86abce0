"""Who computes: this process, local processes, Dask, SLURM."""
