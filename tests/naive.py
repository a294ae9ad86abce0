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


def effective_speeds(x, y, turbines, direction, speed, turbulence):
    """Effective wind speeds of all turbines in one condition, with the default wake model."""
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
            thrust = float(turbines[i].thrust_coefficient(result[i]))
            diameter = turbines[i].rotor_diameter_m
            width = turbopark_width(behind, thrust, diameter, turbulence)
            centre = 1 - math.sqrt(1 - min(1.0, thrust / (8 * (width / diameter) ** 2)))
            for height in (turbines[i].hub_height_m, -turbines[i].hub_height_m):
                away = math.hypot(crosswind[j] - crosswind[i], turbines[j].hub_height_m - height)
                share = gaussian_overlap(0.5 * turbines[j].rotor_diameter_m / width, away / width)
                squares += (centre * share) ** 2
        result[j] = speed * (1 - math.sqrt(squares))
    return result
