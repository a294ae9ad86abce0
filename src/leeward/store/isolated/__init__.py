"""Read and write HDF5 files in child processes; the parent exchanges plain data with them."""
