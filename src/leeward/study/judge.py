"""Check stored evaluations against their study: settings and numbers."""

from typing import TYPE_CHECKING

import numpy as np

from leeward.store import Evaluation, Maker

if TYPE_CHECKING:
    from leeward.study.study import Study

TOLERANCE = 1e-9  # relative difference


class Judge:
    """Checks stored results of a study. Each method returns a sentence that says what is wrong, or None."""

    notes: tuple[str, ...] = ()  # checks that are skipped: none

    def __init__(self, study: "Study") -> None:
        self._study = study

    def __call__(self, result: Evaluation) -> str | None:
        """Return what is wrong with a result after computing it again, or None."""
        study = self._study
        if result.key not in study:
            return f"{result.key} is not a task of the study {study.name}"
        wrong = self.misfit(result)
        if wrong is not None or self.version_of(result) != study.method_version:
            return wrong
        computed = study.evaluate(result.key).datasets
        for name, array in result.datasets.items():
            if name not in computed or computed[name].shape != array.shape:
                return f"{name} has the shape {array.shape}, which the study does not give"
            scale = float(np.abs(computed[name]).max(initial=0.0)) or 1.0
            off = float(np.abs(array - computed[name]).max(initial=0.0)) / scale
            if not off <= TOLERANCE:
                return f"{name} differs from what the wake engine computes by {off:.1e} (relative)"
        return None

    def misfit(self, result: Evaluation) -> str | None:
        """Return why a result does not belong to the study, or None. Return None too if there is no such task."""
        if result.key not in self._study or self.version_of(result) is not None:
            return None
        expected = self._study.fingerprint(result.key, Maker.of(result.details).method_version)
        return (
            f"it was made with other settings, by {Maker.of(result.details)}: its fingerprint is "
            f"{result.fingerprint[:12]}..., that of the study is {expected[:12]}..."
        )

    def version_of(self, result: Evaluation) -> int | None:
        """Return the method version that made a result, or None if its settings differ."""
        stated = Maker.of(result.details).method_version
        version = self._study.method_version if stated is None else stated
        return version if self._study.holds(result.key, result.fingerprint, version) else None
