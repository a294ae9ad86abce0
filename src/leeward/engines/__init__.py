"""Engines that compute tasks: in this process, in local processes, on Dask, on SLURM."""
