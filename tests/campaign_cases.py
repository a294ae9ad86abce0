"""What the tests of campaigns share: a small campaign file."""

from leeward.campaign import load

STUDY = """\
name: study
site:
  weibull:
    sector_frequency: [0.3, 0.2, 0.2, 0.3]
    weibull_a_m_s: [9, 10, 11, 10]
    weibull_k: [2, 2.1, 2.2, 2]
    turbulence_intensity: 0.08
    wind_directions_deg: [0, 30, 60, 90, 120, 150, 180, 210, 240, 270, 300, 330]
    wind_speeds_m_s: [8, 11]
farms:
  - name: north
    polygon_m: [[0, 0], [8000, 0], [8000, 2500], [2500, 2500], [2500, 8000], [0, 8000]]
turbines:
  - {rated_power_mw: 15, rotor_diameter_m: 240, hub_height_m: 150}
turbines_per_farm: 12
spacing_diameters: 3
seeds: 2
"""


def study(folder, *changes, more=""):
    """The small campaign, with pieces of its text replaced and more of it appended."""
    text = STUDY
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new, 1)
    path = folder / "study.yaml"
    path.write_text(text + more, encoding="utf-8")
    return path


def load_study(folder, *changes, more=""):
    return load(study(folder, *changes, more=more))
