"""What a result is, and how it lies in an HDF5 group."""
