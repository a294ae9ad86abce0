"""Results dug out of the raw bytes of damaged HDF5 files, with no help of libhdf5 and no trust in what leads to them.

Whatever is not as the HDF5 file format specification has it, or reaches beyond the end of the file, is Unfamiliar.
"""
