"""Turn corpus files into what the language models are trained and measured on.

`python -m tools.assets.prepare_corpus SOURCE.. --out DIR` reads `wiki.txt` or `wiki.txt.xz` and the like, and
writes `DIR/tokenizer.json`, `DIR/train-NNN.u16.xz`, and `DIR/held-out/` with one shard a source and
`held_out.json`.
"""

from __future__ import annotations

import argparse
import json
import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from evenhand.models import hub_layout
from evenhand.training.corpus_text import CorpusDocument, split_documents
from tools.assets import token_shards, train_tokenizer

PIECES: Final = 18
"""Training shards: about 7 MB each for 130 M tokens, so that they travel in small parcels."""
_LOG = logging.getLogger(__name__)


class Source(NamedTuple):
    """One corpus file, cleaned and split."""

    training: list[CorpusDocument]
    held_out: list[CorpusDocument]


def prepare(paths: Sequence[Path], out: Path, *, vocabulary: int = train_tokenizer.VOCABULARY) -> None:
    """Write tokenizer, training shards and held-out shards of the sources, replacing what is there."""
    sources = {path.name.split(".")[0]: Source(*split_documents(path)) for path in paths}
    out.mkdir(parents=True, exist_ok=True)
    bpe = train_tokenizer.train(tokenizer_sample(sources), vocabulary=vocabulary)
    bpe.save(str(out / "tokenizer.json"), pretty=False)
    # The texts are folded already: the normaliser would only cost time.
    bpe.normalizer = None
    _write_held_out(bpe, sources, out / "held-out")
    shutil.copyfile(out / "tokenizer.json", out / "held-out" / "tokenizer.json")
    streams = [stream(bpe, (document.text for document in source.training)) for source in sources.values()]
    token_shards.write(out, np.concatenate(streams), name="train", pieces=PIECES)
    _LOG.info("%d training tokens", sum(map(len, streams)))


def tokenizer_sample(sources: Mapping[str, Source]) -> Iterator[str]:
    """Yield the texts the tokenizer learns from: one training document in five."""
    for source in sources.values():
        for document in source.training:
            if document.place % train_tokenizer.SAMPLE_STRIDE == 0:
                yield document.text


def stream(bpe: Tokenizer, texts: Iterable[str]) -> NDArray[np.uint16]:
    """Return `END text END text .. END` as one array of ids."""
    end = np.full(1, hub_layout.END, dtype=np.uint16)
    parts = [part for ids in train_tokenizer.encode(bpe, texts) for part in (end, ids)]
    return np.concatenate([*parts, end])


def main(argv: Sequence[str] | None = None) -> None:
    """Run the command."""
    parser = argparse.ArgumentParser()
    parser.add_argument("sources", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    args = parser.parse_args(argv)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(message)s")
    prepare(args.sources, args.out)


def _write_held_out(bpe: Tokenizer, sources: Mapping[str, Source], folder: Path) -> None:
    about: dict[str, dict[str, list[int]]] = {}
    for name, source in sources.items():
        token_shards.write(folder, stream(bpe, (document.text for document in source.held_out)), name=name)
        about[name] = {"document_bytes": [document.raw_bytes for document in source.held_out]}
    (folder / "held_out.json").write_text(json.dumps(about) + "\n")


if __name__ == "__main__":
    main()
