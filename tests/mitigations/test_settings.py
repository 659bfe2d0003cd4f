from __future__ import annotations

import pytest

from evenhand.core.errors import InputError
from evenhand.mitigations.settings import SIGMA, Settings


def test_defaults_are_the_papers() -> None:
    chosen = Settings()
    assert (chosen.strength, chosen.steps, chosen.window, chosen.gamma) == (0.6, 15, 5, 0.95)
    assert SIGMA == {"embedding": 0.02, "classifier": 0.05}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"mode": "both"}, "mode is 'both'. Accepted: embedding, classifier."),
        ({"strength": -0.1}, "strength is -0.1. Accepted: 0 (none) to 1000; the paper uses 0.1 to 0.9."),
        ({"sigma": 0.0}, "sigma is 0.0. Accepted: above 0, at most 10 nats; the paper uses 0.02 and 0.05."),
        (
            {"sigma": float("nan")},
            "sigma is nan. Accepted: above 0, at most 10 nats; the paper uses 0.02 and 0.05.",
        ),
        ({"steps": 0}, "steps is 0. Accepted: 1 to 1000."),
        ({"gamma": 1.5}, "gamma is 1.5. Accepted: above 0, at most 1."),
        ({"gamma": "high"}, "gamma is 'high'. Accepted: above 0, at most 1."),
        ({"steps": 2.5}, "steps is 2.5. Accepted: 1 to 1000."),
        ({"window": True}, "window is True. Accepted: 0 to 1000."),
        ({"carry": "yes"}, "carry is 'yes'. Accepted: true or false."),
        ({"ratio": "none"}, "ratio is 'none'. Accepted: expected, sampled."),
    ],
)
def test_what_is_out_of_range_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Settings(**change)  # type: ignore[arg-type]
    name = next(iter(change))
    assert str(caught.value) == f"{message} What to do: change the mitigation's option {name}."


def test_the_identity_names_every_setting() -> None:
    assert Settings().identity()["strength"] == "0.6"
    assert Settings().identity() != Settings(carry=True).identity()
