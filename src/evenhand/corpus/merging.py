"""Shards added up: sums of small arrays, so that neither their order nor their number matters."""

from __future__ import annotations

import heapq
from dataclasses import dataclass, field

from evenhand.corpus.counts import Counts, no_counts
from evenhand.corpus.matcher import I64
from evenhand.corpus.results import Drawn
from evenhand.corpus.scanner import DocumentEnd
from evenhand.corpus.shards import Clock, Counted, Shard, Task


@dataclass(slots=True)
class Total:
    """What was counted in a corpus so far; memory does not grow with the number of shards."""

    task: Task
    counts: Counts
    blocks: I64
    drawn: dict[int, list[Drawn]] = field(default_factory=dict)
    """The lowest priorities of each cell, with their file."""
    documents: dict[DocumentEnd, int] = field(default_factory=dict)
    """By what ended them."""
    files: set[str] = field(default_factory=set)
    bytes: int = 0
    clock: Clock = field(default_factory=Clock)

    @classmethod
    def of(cls, task: Task) -> Total:
        """Nothing counted yet."""
        return cls(task, no_counts(*task.layout), task.no_blocks())

    def add(self, shard: Shard, counted: Counted) -> None:
        """Add a shard; each must be added once."""
        self.counts += counted.counts
        self.blocks += counted.blocks
        for file, sample in counted.samples:
            kept = self.drawn.setdefault(sample.cell, [])
            kept.append(Drawn(sample.priority, file, sample, is_row=shard.source.format == "parquet"))
        for cell in {sample.cell for _, sample in counted.samples}:
            self.drawn[cell] = heapq.nsmallest(self.task.way.samples, self.drawn[cell])
        self._add_documents(shard, counted)
        self.files.add(shard.source.path)
        self.bytes += counted.bytes
        self.clock += counted.clock

    def _add_documents(self, shard: Shard, counted: Counted) -> None:
        ending, found = counted.document_end, counted.counts.documents
        if ending == "file":
            # A file in several shards is one document.
            found = 0 if shard.source.path in self.files else int(bool(found))
        self.documents[ending] = self.documents.get(ending, 0) + found
