from __future__ import annotations

import pytest

from evenhand.core.errors import InputError
from evenhand.mitigations.calibration import SIGMA, CalibrationConfig


def test_defaults_are_the_papers() -> None:
    chosen = CalibrationConfig()
    assert (chosen.strength, chosen.steps, chosen.window, chosen.gamma) == (0.6, 15, 5, 0.95)
    assert SIGMA == {"embedding": 0.02, "classifier": 0.05}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mode": "both"}, "mode is 'both'. Expected: embedding, classifier."),
        ({"strength": -0.1}, "strength is -0.1. Expected: 0 (off) to 1000; the paper uses 0.1 to 0.9."),
        ({"sigma": 0.0}, "sigma is 0.0. Expected: above 0, at most 10 nats; the paper uses 0.02 and 0.05."),
        (
            {"sigma": float("nan")},
            "sigma is nan. Expected: above 0, at most 10 nats; the paper uses 0.02 and 0.05.",
        ),
        ({"steps": 0}, "steps is 0. Expected: 1 to 1000."),
        ({"gamma": 1.5}, "gamma is 1.5. Expected: above 0, at most 1."),
        ({"gamma": "high"}, "gamma is 'high'. Expected: above 0, at most 1."),
        ({"steps": 2.5}, "steps is 2.5. Expected: 1 to 1000."),
        ({"window": True}, "window is True. Expected: 0 to 1000."),
        ({"carry": "yes"}, "carry is 'yes'. Expected: true or false."),
        ({"ratio": "none"}, "ratio is 'none'. Expected: expected, sampled."),
    ],
)
def test_what_is_out_of_range_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        CalibrationConfig(**change)  # type: ignore[arg-type]
    name = next(iter(change))
    assert str(caught.value) == f"{message} Fix: change the mitigation's option {name}."


def test_the_identity_names_every_setting() -> None:
    assert CalibrationConfig().identity()["strength"] == "0.6"
    assert CalibrationConfig().identity() != CalibrationConfig(carry=True).identity()
