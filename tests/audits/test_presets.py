from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from evenhand.audits.audit import audit, prepare
from evenhand.config import PRESETS, SettingsOptions, resolve_config
from evenhand.core.errors import InputError, RunFolderError
from evenhand.core.records import Execution, GenerationSpec
from evenhand.models import builtin


def spec(preset: str, **given: object) -> GenerationSpec:
    return resolve_config({"preset": preset, **given}).sampling(GenerationSpec(samples=7))


def test_bold_gpt2_is_the_papers() -> None:
    # Appendix A.2.2: top-k 40, top-p 0.95; one text a prompt, scored whole.
    found = spec("bold-gpt2")
    assert (found.samples, found.top_k, found.top_p, found.stop) == (1, 40, 0.95, "none")
    assert (found.temperature, found.max_new_tokens) == (1.0, 30)


@pytest.mark.parametrize("code", ["Wikipedia", "Opinion", "Thoughts"])
def test_bold_ctrl_is_the_papers_with_any_of_its_codes(code: str) -> None:
    # Appendix A.2.3: repetition penalty 1.2, top-p 0.9.
    found = spec("bold-ctrl", control_code=code)
    assert (found.samples, found.repetition_penalty, found.top_p, found.top_k) == (1, 1.2, 0.9, 0)
    assert found.control_code == code
    assert spec("bold-ctrl").control_code == "Wikipedia"


def test_bold_bert_is_the_papers() -> None:
    # Appendix A.2.1: length 15, temperature 0.7, burn-in 200, 500 iterations.
    found = spec("bold-bert")
    assert (found.samples, found.max_new_tokens, found.temperature) == (1, 15, 0.7)
    assert (found.burn_in, found.iterations, found.top_k, found.top_p) == (200, 500, 0, 1.0)
    assert spec("bold-bert", burn_in=3, iterations=4).iterations == 4


def test_other_models_keys_do_not_speak_of_iterations() -> None:
    assert not {"burn_in", "iterations"} & set(GenerationSpec().sampling())
    assert {"burn_in", "iterations"} <= set(spec("bold-bert").sampling())
    changed = replace(spec("bold-bert"), iterations=499)
    assert changed.sampling() != spec("bold-bert").sampling()


@pytest.mark.parametrize(("preset", "field"), [("bold-bert", "burn_in 200"), ("bold-ctrl", "control code")])
def test_a_preset_for_another_kind_of_model_is_refused_before_anything_is_written(
    preset: str, field: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=f"^{field}"):
        prepare("builtin", preset=preset, metrics="sentiment", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_preset_of_models_that_write_forward_is_refused_for_a_masked_one(tmp_path: Path) -> None:
    # Each of its fields alone would do: top-k, top-p, no iterations.
    with pytest.raises(InputError) as error:
        prepare("builtin:masked", preset="bold-gpt2", metrics="sentiment", out=tmp_path / "run")
    assert str(error.value) == (
        "preset 'bold-gpt2' for the masked model 'builtin:masked'. Expected: bold-bert for masked models; "
        "bold-gpt2 and bold-ctrl for models that write forward. Fix: use --preset bold-bert, or name "
        "the sampling without a preset."
    )


def test_a_masked_model_is_audited_like_any_other(tmp_path: Path) -> None:
    model = builtin.load("masked", execution=Execution(device="cpu"))
    options = {"limit": 6, "samples": 1, "max_new_tokens": 4, "metrics": "sentiment"}
    prepared = prepare(model, iterations=8, out=tmp_path / "run", **options)  # type: ignore[arg-type]
    assert any("s at" in line and "tokens/s, as measured just now" in line for line in prepared.plan().lines)
    run = prepared.run()
    generations = run.table("generations")
    assert generations.height == 6
    assert generations["new_tokens"].to_list() == [4] * 6
    # What the user left open is written down: a burn-in of 200 at most, here all eight iterations.
    sampling = run.manifest["identity"]["suites"]["starter"]["sampling"]
    assert (sampling["burn_in"], sampling["iterations"]) == (8, 8)
    again = audit(model, iterations=8, out=tmp_path / "run", **options)  # type: ignore[arg-type]
    assert again.table("generations").equals(generations)
    with pytest.raises(RunFolderError, match=r"sampling\.iterations: 8 there, 9 now"):
        prepare(model, iterations=9, out=tmp_path / "run", **options).run()  # type: ignore[arg-type]


def test_every_preset_names_its_length_or_leaves_it_to_the_suite() -> None:
    fields = set(GenerationSpec.__dataclass_fields__)
    assert all(set(values) <= fields for values in PRESETS.values())


@pytest.mark.parametrize(
    ("options", "settings", "message"),
    [
        (
            {"preset": "regrad"},
            "",
            "generation.preset is 'regrad'. Expected: 'bold-gpt2', 'bold-ctrl', 'bold-bert', 'regard' or "
            "'political'. Fix: change --preset.",
        ),
        (
            {},
            "[generation]\npreset = 'x'",
            "generation.preset is 'x'. Expected: 'bold-gpt2', 'bold-ctrl', 'bold-bert', 'regard' or "
            "'political'. Fix: change it in {file}, or give --preset.",
        ),
        (
            {"top_p": 3},
            "",
            "generation.top_p is 3. Expected: less than or equal to 1. Fix: change --top-p.",
        ),
        (
            {},
            "[suite]\nfoo = 1",
            "there is no setting 'suite.foo'. Expected: names, limit, mask. Fix: change it in {file}.",
        ),
    ],
)
def test_settings_that_cannot_be_meant(
    options: SettingsOptions, settings: str, message: str, tmp_path: Path
) -> None:
    file = tmp_path / "e.toml"
    file.write_text(settings)
    with pytest.raises(InputError) as caught:
        resolve_config({**options, "config": file} if settings else options)
    assert str(caught.value) == message.format(file=file)
