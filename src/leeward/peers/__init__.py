"""A wind farm of leeward as a model of PyWake or FLORIS."""
