"""Machine learning: a grid of parameters, and a model that each process loads once."""

import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import joblib
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import GridSearchCV, ParameterGrid, cross_val_score

from .engines import Engine
from .program import Program

MODEL = Path(tempfile.gettempdir()) / "cloudpar-bench-model.joblib"


@cache
def samples() -> tuple[Any, Any]:
    """Return 1,500 samples of 20 features."""
    x, y = make_classification(1_500, 20, random_state=1)
    return x, y


def grid_search(engine: Engine) -> object:
    """Fit three folds for each of 12 combinations of parameters. The function captures the samples."""
    x, y = samples()

    def score(parameters: dict[str, Any]) -> float:
        forest = RandomForestClassifier(**parameters, random_state=1)
        return float(cross_val_score(forest, x, y, cv=3).mean())

    grid = ParameterGrid({"n_estimators": [20, 40], "max_depth": [3, 6, None], "min_samples_leaf": [1, 5]})
    return round(max(engine.map(score, grid)), 9)


def n_jobs(engine: Engine) -> object:
    """Let scikit-learn itself start the fits, by its argument `n_jobs`."""
    x, y = samples()
    grid = {"n_estimators": [20, 40], "max_depth": [3, 6, None], "min_samples_leaf": [1, 5]}
    search = GridSearchCV(RandomForestClassifier(random_state=1), grid, cv=3, n_jobs=-1)
    with engine.backend():
        return round(float(search.fit(x, y).best_score_), 9)


def train() -> None:
    """Write a model to a file."""
    x, y = samples()
    joblib.dump(RandomForestClassifier(100, random_state=1).fit(x, y), MODEL)


@cache
def model() -> Any:
    """Load the model once in each process."""
    return joblib.load(MODEL)


def predict(row: int) -> int:
    x, _ = samples()
    return int(model().predict(x[row : row + 1])[0])


def models(engine: Engine) -> object:
    return sum(engine.map(predict, range(200)))


PROGRAMS = (
    Program("grid-search", "12 points x 3 folds of a random forest", grid_search),
    Program("n-jobs", "12 points x 3 folds of a random forest by scikit-learn's n_jobs", n_jobs),
    Program("models", "200 predictions; each process loads the model once", models, prepare=train),
)
