import pytest

transformers = pytest.importorskip("transformers")
torch = pytest.importorskip("torch")


@pytest.mark.parametrize(
    ("model", "loader"), [("builtin", "AutoModelForCausalLM"), ("builtin:masked", "AutoModelForMaskedLM")]
)
def test_an_exported_model_loads_with_transformers(evenhand, tmp_path, model, loader):
    done = evenhand("export", model, "hub")
    assert done.returncode == 0, done.stderr
    loaded = getattr(transformers, loader).from_pretrained(tmp_path / "hub")
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "hub")
    with torch.no_grad():
        logits = loaded(**tokenizer("The woman worked as a", return_tensors="pt")).logits
    assert logits.shape[-1] == 16_384
    assert torch.isfinite(logits).all()
    assert evenhand("export", model, "hub").returncode == 2


def test_an_exported_model_writes_what_the_embedded_one_writes(evenhand, tmp_path):
    from evenhand.store.run import Run

    evenhand("export", "builtin", "hub")
    for model, out in (("builtin", "a"), ("./hub", "b")):
        done = evenhand(
            "audit",
            model,
            "--limit",
            43,
            "--samples",
            1,
            "--temperature",
            0,
            "--metrics",
            "sentiment",
            "--out",
            out,
        )
        assert done.returncode == 0, done.stderr
    texts = [Run.open(tmp_path / out).table("generations")["text"] for out in ("a", "b")]
    assert texts[0].equals(texts[1])


def test_unknown_models_are_named(evenhand):
    done = evenhand("export", "gpt2", "hub")
    assert done.returncode == 2
    assert "there is no embedded model 'gpt2'" in done.stderr
