"""Fit a small surrogate model to study.h5: the external wake loss of the target from the inputs of a scenario.

Needs scikit-learn: `pip install scikit-learn`. Run it as `python surrogate.py`, after `leeward evaluate study.yaml`.
"""

from sklearn.dummy import DummyRegressor
from sklearn.ensemble import GradientBoostingRegressor
from sklearn.linear_model import RidgeCV
from sklearn.metrics import mean_absolute_error, r2_score
from sklearn.model_selection import KFold, cross_val_predict
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import leeward

FOLDS = KFold(n_splits=5, shuffle=True, random_state=0)  # each scenario is predicted by a model that did not see it


def main() -> None:
    with leeward.open_study("study.h5") as study:
        table = study.features()
    farms = sorted({name.split("_")[0] for name in table.columns if name.endswith("_first_step")})
    inputs = table[[f"{farm}_{name}" for farm in farms for name in ("rated_power_mw", "first_step")]]
    loss = 100 * table["external_wake_loss"]  # per cent of the gross yield
    print(f"{len(table)} scenarios, {inputs.shape[1]} inputs; external loss {loss.min():.2f} to {loss.max():.2f} %")
    models = {
        "mean of the data": DummyRegressor(),
        "gradient boosting": GradientBoostingRegressor(random_state=0),
        "ridge regression": make_pipeline(StandardScaler(), RidgeCV()),
    }
    for name, model in models.items():
        predicted = cross_val_predict(model, inputs, loss, cv=FOLDS)
        error = mean_absolute_error(loss, predicted)
        print(f"{name:18} R2 {r2_score(loss, predicted):6.3f}, mean absolute error {error:.3f} percentage points")


if __name__ == "__main__":
    main()
