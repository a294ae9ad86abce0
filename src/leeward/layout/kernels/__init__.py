"""The compiled part of layouts: distances from boundaries, constraints, lattices."""
