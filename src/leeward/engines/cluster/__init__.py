"""Engines for several machines: Dask, and SLURM through Dask. They need pip install 'leeward[cluster]'."""
