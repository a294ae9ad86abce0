"""The wake engine on NVIDIA GPUs, with numba-cuda."""
