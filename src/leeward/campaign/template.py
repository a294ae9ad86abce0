"""The campaign file that `leeward new` writes: it works as it is, and shows every key."""

TEMPLATE = """\
# A campaign of leeward: every farm with every turbine type and every seed is one layout to optimise.
#   leeward run FILE                  computes all of them, and carries on where it was stopped
#   leeward run FILE --effort fast    for a first look
# Lengths are metres, wind directions degrees clockwise from north (where the wind comes from), energies GWh a year.
# Keys that are commented out show their defaults, or other ways to say it. Paths are relative to this file.

name: my-campaign                 # default: the name of the file

# The projected coordinate system of all coordinates, for maps and for GeoJSON files in another one.
# crs: EPSG:25831

# The wind: exactly one of weibull, table, time_series, file; or `site: danish-energy-island`, which is built in.
site:
  weibull:                        # one figure for each sector, the first one centred on north
    sector_frequency: [0.06, 0.05, 0.07, 0.09, 0.08, 0.07, 0.09, 0.12, 0.13, 0.10, 0.08, 0.06]
    weibull_a_m_s: [8.9, 8.5, 9.6, 10.2, 10.4, 10.3, 11.0, 11.6, 11.5, 10.9, 10.4, 9.7]
    weibull_k: [2.0, 2.0, 2.1, 2.2, 2.3, 2.3, 2.2, 2.2, 2.1, 2.1, 2.2, 2.1]
    turbulence_intensity: 0.07    # a fraction; or one for each sector
    # wind_directions_deg: [0, 1, ..., 359]
    # wind_speeds_m_s: [3, 4, ..., 25]
    # interpolation: nearest      # of sectors; or linear
  # table:                        # a wind rose: a row of probabilities for each direction, one for each speed
  #   kind: bins                  # each row stands for its sector; or exact: for this very direction
  #   speed_bins: centres         # of bins; or edges, one more than probabilities in a row
  #   wind_directions_deg: [0, 30, 60, ...]
  #   wind_speeds_m_s: [4, 6, 8, ...]
  #   probability: [[0.01, 0.02, ...], ...]
  #   turbulence_intensity: 0.1
  # time_series: {file: wind.csv} # with the columns wind_direction_deg, wind_speed_m_s[, turbulence_intensity, weight]
  # file: ref_site.nc             # a site file of PyWake's

# Where turbines may stand. A list; or all polygons of a GeoJSON file:
# farms:
#   file: farms.geojson
#   only: [0, 3]                  # default: all, by their property farm_idx or else by their position from 0
farms:
  - name: north                   # default: farm and its number
    # farm_idx: 0                 # its number in keys such as farm0_t1_s3; default: its position in this list
    polygon_m: [[0, 0], [7000, 0], [7000, 3000], [3000, 3000], [3000, 7000], [0, 7000]]
    # holes_m: [[[500, 500], [900, 500], [900, 900]]]
    exclude:                      # what must stay free; default: nothing
      - {line_m: [[0, 5000], [7000, 1000]], buffer_m: 100}
    # n_turbines: 12              # of this farm, instead of what holds for all; or capacity_mw
  - name: south
    circle_m: {x: 3500, y: -5000, radius: 3000}
  # - {wkt: "POLYGON ((0 0, 8000 0, 8000 8000, 0 0))"}
  # - {file: area.geojson, feature: west}
  # - {regions: [{polygon_m: [...]}, {circle_m: {...}}]}

turbines:                         # types; or `turbines: danish-energy-island`
  - {name: 15 MW, rated_power_mw: 15, rotor_diameter_m: 240, hub_height_m: 150}
  - name: 12 MW
    # type_idx: 1                 # its number in keys; default: its position in this list
    rated_power_mw: 12
    rotor_diameter_m: 214
    hub_height_m: 133
    # turbulence_intensity: 0.1   # these four shape the generic power and thrust curves
    # air_density_kg_m3: 1.225
    # max_power_coefficient: 0.49
    # constant_thrust: 0.8
  # - {name: own, wind_speeds_m_s: [3, 12, 25], power_mw: [0, 8, 8], thrust_coefficient: [0.8, 0.8, 0.1],
  #    rotor_diameter_m: 170, hub_height_m: 110}
  # - {file: turbine.yaml}        # the same keys; or a CSV file with wind_speed_m_s, power_mw, thrust_coefficient

turbines_per_farm: 10             # or from a capacity, rounded down:
# capacity_mw: 150

spacing_diameters: 3              # at least so far apart; or in metres:
# spacing_m: 720

# Turbines that stand already: their wakes count, and they keep their distance.
# neighbours:
#   - {x_m: [-4000, -4000], y_m: [0, 1000], turbine: 0}        # a type_idx, or a turbine as above
#   - {file: neighbours.csv, turbine: {file: old.yaml}}        # with the columns x_m, y_m

# wake_model: nygaard_2022        # or with options: {name: jensen, expansion: 0.05}

seeds: 3                          # a count; or a list, [0, 5, 7]; or a range as in Python, 0:50

optimiser:
  recipe: smart_start+refine      # or smart_start, random+refine, random, or your own as module:function
  effort: normal                  # or fast, thorough
  # time_budget_s: 60             # ends each layout by the clock instead: not reproducible
  # work: 100000000               # or after so many pair evaluations
  # grid_size: 18                 # of SmartStart: points a side
  # random_pct: 30                # of SmartStart: chance chooses among the best so many per cent

# How to run it; none of this changes a number.
# execution:
#   engine: local                 # processes on this machine; inline: in this process; slurm, dask: on a cluster
#   workers: 4                    # default: as many as there are cores to use
#   timeout_s: 3600               # a layout that takes longer is stopped and tried again
#   retries: 2
#   loose_results: 20000          # more results than these are put together into larger files
#   import_folders: []            # where a recipe of your own lies, if not beside this file
#   slurm: {jobs: 2:20, cores: 32, memory: 64GB, walltime: 2:00:00}   # docs/cluster.md has more
#   dask: {scheduler: tls://host:8786}
"""


def template_text() -> str:
    """A small campaign with comments; keys that are comments show their defaults."""
    return TEMPLATE
