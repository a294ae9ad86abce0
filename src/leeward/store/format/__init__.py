"""Results, and their form as HDF5 groups."""
