"""Engines beyond one machine: Dask, and SLURM through it. They need the extra: pip install 'leeward[cluster]'."""
