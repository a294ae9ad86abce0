"""The slow, obvious twin of the kernels: one wind condition, one pair at a time, formulas as in the papers."""

import math

import numpy as np


def gaussian_overlap(radius, distance, cells=64):
    """Mean of exp(-r^2 / 2) over a disc, by brute force on a polar grid."""
    if radius == 0:
        return math.exp(-0.5 * distance**2)
    r = (np.arange(cells) + 0.5) / cells * radius
    angle = (np.arange(cells) + 0.5) / cells * 2 * math.pi
    squared = r[:, None] ** 2 + distance**2 - 2 * r[:, None] * distance * np.cos(angle)
    return float((np.exp(-0.5 * squared) * r[:, None]).sum() / (r.sum() * cells))


def turbopark_width(downwind, thrust, diameter, turbulence):
    """Nygaard et al. (2020), eq. 6, with the initial width of Bastankhah and Porté-Agel."""
    alpha, beta = 1.5 * turbulence, 0.8 * turbulence / math.sqrt(thrust)
    end = math.sqrt((alpha + beta * downwind / diameter) ** 2 + 1)
    start = math.sqrt(alpha**2 + 1)
    ratio = (end + 1) * alpha / ((start + 1) * (alpha + beta * downwind / diameter))
    expansion = 0.04 * turbulence * diameter / beta * (end - start - math.log(ratio))
    rest = math.sqrt(1 - min(thrust, 0.96))
    return expansion + 0.25 * diameter * math.sqrt(0.5 * (1 + rest) / rest)


def effective_speeds(x, y, turbines, direction, speed, turbulence, ground=None, density=None):
    """Effective wind speeds of all turbines in one condition, with the default wake model.

    speed, turbulence: one number, or one for each turbine; ground, density: one for each turbine, or None.
    """
    speeds, intensities, ground, density = (
        np.broadcast_to(values, len(x)) for values in (speed, turbulence, ground or 0.0, density or 1.0)
    )
    angle = math.radians(270 - direction)
    downwind = [px * math.cos(angle) + py * math.sin(angle) for px, py in zip(x, y, strict=True)]
    crosswind = [-px * math.sin(angle) + py * math.cos(angle) for px, py in zip(x, y, strict=True)]
    result = [math.nan] * len(x)
    for j in sorted(range(len(x)), key=lambda i: downwind[i]):
        squares = 0.0
        for i in range(len(x)):
            behind = downwind[j] - downwind[i]
            if i == j or behind <= 0:
                continue
            thrust = float(turbines[i].thrust_coefficient(result[i])) * density[i]
            diameter = turbines[i].rotor_diameter_m
            width = turbopark_width(behind, thrust, diameter, intensities[i])
            centre = 1 - math.sqrt(1 - min(1.0, thrust / (8 * (width / diameter) ** 2)))
            for height in (turbines[i].hub_height_m, -turbines[i].hub_height_m):
                above = turbines[j].hub_height_m - height + ground[j] - ground[i]
                away = math.hypot(crosswind[j] - crosswind[i], above)
                share = gaussian_overlap(0.5 * turbines[j].rotor_diameter_m / width, away / width)
                squares += (centre * share) ** 2
        result[j] = speeds[j] * (1 - math.sqrt(squares))
    return result


def between(values, direction, linear):
    """Values at a direction: of the nearest sector, or linear between sectors. One value holds for all sectors."""
    position = direction / 360.0 * len(values)
    if not linear:
        return values[int(position + 0.5) % len(values)]
    below = int(position)
    return values[below] + (position - below) * (values[(below + 1) % len(values)] - values[below])


def weibull_cdf(speed, scale, shape):
    return 1.0 - math.exp(-((speed / scale) ** shape))


class NaiveField:
    """The free wind at one place of a dataset with the names of PyWake's `XRSite`.

    linear: True interpolates between sectors. shear: kind and values by sector, which apply at 100 m, or None.
    """

    def __init__(self, dataset, x, y, height, linear=False, shear=None):
        place = {name: at for name, at in (("x", x), ("y", y), ("h", height)) if name in dataset.dims}
        self.here = dataset.interp(place)
        self.height, self.linear, self.shear = height, linear, shear

    def value(self, name, direction, linear=True):
        """One number at this direction."""
        variable = self.here[name]
        return between(variable.values, direction, linear) if "wd" in variable.dims else float(variable)

    def factor(self, direction):
        """The local wind speed relative to that at the reference."""
        factor = self.value("Speedup", direction, self.linear) if "Speedup" in self.here else 1.0
        if self.shear is not None:
            kind, values = self.shear
            value = between(np.atleast_1d(values), direction, linear=False)
            if kind == "power":
                return factor * (self.height / 100.0) ** value
            return factor * math.log(self.height / value) / math.log(100.0 / value)
        return factor

    def probability(self, direction, width, number, edges):
        """The probability of a bin of directions of this width and of the speed with this number."""
        sector_width = 360.0 / self.here.sizes["wd"]
        if "P" in self.here:
            return between(self.here["P"].values, direction, self.linear)[number] * width / sector_width
        if self.here.attrs.get("speed_bins") == "local":
            edges = self.factor(direction) * edges
        names = ("Sector_frequency", "Weibull_A", "Weibull_k")
        frequency, scale, shape = (self.value(name, direction, self.linear) for name in names)
        share = weibull_cdf(edges[number + 1], scale, shape) - weibull_cdf(edges[number], scale, shape)
        return frequency * width / sector_width * share
