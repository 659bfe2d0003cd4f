"""``build``: collects a prompt suite from your own pages, as BOLD did from Wikipedia.

From a page to prompts: groups are matched, sentences accepted or rejected for a reason. A TOML file, ours
(after BOLD's A.1) or the user's, defines which pages belong to which group.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Annotated, Final, Literal, NamedTuple, Unpack

import polars as pl
from pydantic import AfterValidator, StringConstraints

from evenhand.audits.options import BuildOptions
from evenhand.audits.run_setup import SILENT_PROGRESS, RunPlan
from evenhand.collection.page_streams import (
    SourcePage,
    linked_titles,
    page_categories,
    plain_text,
    read_pages,
)
from evenhand.core.digests import Json, digest, file_digest
from evenhand.core.errors import InputError
from evenhand.core.files import asset_path
from evenhand.core.options import checks_options
from evenhand.core.protocols import Progress
from evenhand.core.records import RESERVED_GROUPS
from evenhand.core.toml import StrictModel, read_model
from evenhand.store.atomic_writes import write_text
from evenhand.store.run_folder import RunFolder, default_folder, run_stage, utc_timestamp
from evenhand.store.text_sources import ReadProblem, TextSource, find_sources
from evenhand.text.sentences import cut_first_sentence, split_sentences

EARLY_WORDS: Final = 8
"""The term must be among the first eight words."""
WORDS_KEPT: Final = 5
"""Words of a prompt besides the term."""
SHORTEST_SENTENCE: Final = 9
"""Minimum words of a sentence: eight or fewer are too short."""

Reason = Literal[
    "short", "incomplete", "no_early_term", "nothing_left", "no_person", "about_person", "repeated"
]
REASONS: Final[dict[Reason, str]] = {
    "short": "eight words or fewer",
    "incomplete": "no full stop, question or exclamation mark at the end: a heading, a list, or truncated",
    "no_early_term": "the term is not among the first eight words",
    "nothing_left": "the prompt would be the whole sentence",
    "no_person": "gender and race: the page is not about a person",
    "about_person": "the other domains: the page is about a person",
    "repeated": "the sentence was already accepted for this entity and group",
}
"""Reasons for rejecting a sentence, in the order of the checks."""

_WORD = re.compile(r"\S+")
_END = re.compile(r"[.!?…][\"'”’)\]»]*\Z")


def compile_term(words: str, *, person: bool = False) -> re.Pattern[str]:
    """A pattern for the topic of a page in its sentences.

    A person's name is matched as written, any other term in any case and with a plural ending; both as whole
    words.
    """
    spelled = r"\s+".join(map(re.escape, words.split()))
    ending = "" if person else "(?:s|es)?"
    return re.compile(rf"(?<!\w){spelled}{ending}(?!\w)", 0 if person else re.IGNORECASE)


def cut_prompt(sentence: str, term: re.Pattern[str]) -> tuple[str, None] | tuple[None, Reason]:
    """The beginning of a sentence up to its fifth word outside the term, or the reason why there is none.

    >>> cut_prompt("An animator is an artist who makes many images.", compile_term("Animator"))
    ('An animator is an artist who', None)
    """
    words = [match.span() for match in _WORD.finditer(sentence)]
    if len(words) < SHORTEST_SENTENCE:
        return None, "short"
    if not _END.search(sentence):
        return None, "incomplete"
    match = term.search(sentence)
    start, end = match.span() if match else (0, 0)
    inside = [place for place, word in enumerate(words) if word[0] < end and word[1] > start]
    if not inside or inside[-1] >= EARLY_WORDS:
        return None, "no_early_term"
    outside = [place for place in range(len(words)) if place not in inside]
    last = max(inside[-1], outside[min(WORDS_KEPT, len(outside)) - 1])
    if last + 1 >= len(words):
        return None, "nothing_left"
    return sentence[: words[last][1]], None


_CATEGORY = re.compile(r"\b\d{3,4}s? (?:births|deaths)\b|\bliving people\b", re.IGNORECASE)
_DATES = re.compile(r"\((?:[^()]*\W)?(?:born\b|b\.|died\b|\d{3,4}\b[^()]{0,40}[–-][^()]{0,40}\d{3,4}\b)")
_IS = re.compile(r"\b(?:is|was|are|were) (?:an?|the|one of the)\b", re.IGNORECASE)
_PARTICLES: Final = "al bin da de del della den der di dos du el la le van von y"
_ROLES: Final = (
    "academic activist actor actress admiral animator architect artist astronaut astronomer athlete attorney "
    "author baseball basketball bishop botanist boxer businessman businesswoman cardinal chef chemist "
    "choreographer clergyman coach comedian comedienne composer conductor criminal cyclist dancer designer "
    "diplomat director economist editor educator engineer entertainer entrepreneur essayist executive "
    "explorer filmmaker footballer general geologist golfer governor guitarist historian host inventor "
    "journalist judge jurist lawyer linguist mathematician mayor merchant minister missionary model musician "
    "nobleman novelist nurse officer painter performer philanthropist philosopher photographer physician "
    "physicist pianist pilot player playwright poet politician preacher president priest producer professor "
    "psychologist publisher rabbi rapper reporter researcher saxophonist scholar scientist screenwriter "
    "sculptor senator singer skater sociologist soldier songwriter spy sportscaster statesman surgeon "
    "swimmer teacher theologian trumpeter vocalist wrestler writer"
)
_ROLE = re.compile(rf"\b(?:{'|'.join(_ROLES.split())})\b", re.IGNORECASE)


_OPENING = 2000
"""Characters of a page searched for its first sentence."""
_SUBJECT = re.compile(
    r"(?:The |An? )?[\"“]?(?P<subject>[^\"”(,]{2,80}?)[\"”]?"
    r"(?=\s*\(|,|\s+(?:is|was|are|were|refers to|may refer to)\b)"
)
_NO_SUBJECT = re.compile(r"^(?:In|On|At|During|After|As|By|For|From|This|There|It)\b|\b(?:has|have|had)\b")
_BRACKETS = re.compile(r"\([^)]*\)")
_IN_BRACKETS = re.compile(r" ?\(([^()\n]*+)\)")
_BRACKETED_DATES = re.compile(r"\b(?:born|died|\d{4})\b|\A\W*\Z")
_LONGEST_TITLE = 1000


def looks_like_name(title: str) -> bool:
    """Whether a title looks like a full name: two to five words, capitalised except particles, no digit.

    >>> looks_like_name("Ann von Roe"), looks_like_name("Actress"), looks_like_name("List of actors")
    (True, False, False)
    """
    words = title.split()
    return (
        2 <= len(words) <= 5
        and not any(letter.isdigit() for letter in title)
        and words[0][:1].isupper()
        and words[-1][:1].isupper()
        and all(word[:1].isupper() or word.lower() in _PARTICLES.split() for word in words)
    )


def is_person(title: str, first_sentence: str, categories: Sequence[str] = ()) -> bool:
    """Whether a page is about one person.

    Its title must look like a name. If the page has categories, they decide ("1950 births", "Living people");
    otherwise the first sentence must begin with the name's first word and give dates of birth or death, or
    state a role of the person.
    """
    if not looks_like_name(title):
        return False
    if categories:
        return any(_CATEGORY.search(category) for category in categories)
    if not first_sentence.lstrip("\"“' ").startswith(title.split()[0]):
        return False  # "The American Mafia is a criminal society": names of people have no article
    if _DATES.search(first_sentence):
        return True
    verb = _IS.search(first_sentence)
    return verb is not None and _ROLE.search(first_sentence, verb.end(), verb.end() + 100) is not None


Rejections = Counter[tuple[str, str, str]]
"""Number of rejected sentences by domain, group and reason."""


class CollectedPrompt(NamedTuple):
    """A prompt and its source."""

    domain: str
    group: str
    key: str
    prompt: str
    wiki: str
    """The whole sentence."""
    page: str
    sentence: int
    """The number of the sentence on the page, from 1."""
    byte: int
    """Byte offset of the page in its uncompressed file."""


def collect_prompts(
    page: SourcePage, groups: Sequence[GroupRule]
) -> tuple[list[CollectedPrompt], Rejections]:
    """Collect the prompts of a page, and count its other sentences by reason for rejection."""
    prompts, rejected = list[CollectedPrompt](), Rejections()
    categories = page_categories(page)
    opening = "" if page.is_wikitext else cut_first_sentence(page.text[:_OPENING].lstrip())
    title = page.title or find_subject(opening)
    rules = match_groups(groups, title, opening, categories) if title else []
    if not rules:
        return prompts, rejected
    text = plain_text(page)
    opening = opening or cut_first_sentence(text[:_OPENING].lstrip())
    name = _BRACKETS.sub("", title[:_LONGEST_TITLE]).replace("_", " ").strip()
    person, sentences = is_person(name, opening, categories), split_page(text)
    for rule in rules:
        fault: Reason = "no_person" if rule.person else "about_person"
        term = compile_term(name, person=rule.person)
        for number, sentence in enumerate(sentences, start=1):
            prompt, reason = cut_prompt(sentence, term)
            if prompt is None or rule.person != person:
                rejected[rule.domain, rule.name, reason or fault] += 1
                continue
            source = (f"{prompt} ", sentence, title, number, page.byte)
            prompts.append(CollectedPrompt(rule.domain, rule.name, title.replace(" ", "_"), *source))
    return prompts, rejected


def find_subject(sentence: str) -> str:
    """The topic of a page without a title: the subject of its first sentence.

    >>> find_subject("A tailor is a maker of clothes."), find_subject("Ann Roe (born 1950) is a pilot.")
    ('Tailor', 'Ann Roe')
    """
    match = _SUBJECT.match(sentence)
    words = match["subject"].strip() if match else ""
    return "" if _NO_SUBJECT.search(words) else words[:1].upper() + words[1:]


def split_page(text: str) -> list[str]:
    """The sentences of a page; a line break also ends a sentence.

    Dates of life in brackets are removed, as in the published sentences: they would fill the prompt.
    """
    plain = _IN_BRACKETS.sub(lambda match: "" if _BRACKETED_DATES.search(match[1]) else match[0], text)
    lines = (line.strip() for line in plain.split("\n"))
    return [sentence for line in lines if line for sentence in split_sentences(line)]


def normalise_title(title: str) -> str:
    """A title in the canonical spelling used to compare titles.

    >>> normalise_title("List_of_Asian_Americans ")
    'list of asian americans'
    """
    return " ".join(title.replace("_", " ").split()).casefold()


Words = Annotated[str, StringConstraints(min_length=1, max_length=400)]
_Title = Annotated[Words, AfterValidator(normalise_title)]


class GroupRule(StrictModel):
    """One group and the criteria for its pages; a page that meets any one of them matches."""

    domain: Annotated[str, StringConstraints(pattern=r"^\w[\w-]*$")]
    name: Words
    person: bool = False
    """If true, only pages about people count, and only sentences with the person's name."""
    lists: frozenset[_Title] = frozenset()
    """Pages whose list items link to the group's pages."""
    categories: frozenset[_Title] = frozenset()
    titles: frozenset[_Title] = frozenset()
    title_words: tuple[_Title, ...] = ()
    """Words, one of which must be in the title."""
    openings: tuple[_Title, ...] = ()
    """For text without links or categories: phrases, one of which must be in the first sentence."""

    @cached_property
    def patterns(self) -> tuple[re.Pattern[str], re.Pattern[str]]:
        """Patterns for the title and the first sentence, which match nothing where no words are given."""
        choices = ("|".join(map(re.escape, words)) or "(?!)" for words in (self.title_words, self.openings))
        title, opening = (re.compile(rf"(?<!\w)(?:{words})(?!\w)") for words in choices)
        return title, opening


class _File(StrictModel):
    groups: tuple[GroupRule, ...]


def match_groups(
    groups: Sequence[GroupRule], title: str, first_sentence: str, categories: Sequence[str]
) -> list[GroupRule]:
    """The groups to which a page belongs."""
    title, named = normalise_title(title), set(map(normalise_title, categories))
    opening = "" if categories else first_sentence.casefold()
    return [
        rule
        for rule in groups
        if title in rule.titles
        or named & rule.categories
        or rule.patterns[0].search(title)
        or (opening and rule.patterns[1].search(opening))
    ]


def read_groups(source: Path) -> tuple[GroupRule, ...]:
    """Read the groups from a file."""
    expected = "[[groups]] with domain, name and one of lists, categories, titles, title_words, openings"
    fix = "`evenhand build --help` links to a page with an example"
    rules = read_model(source, _File, expected=expected, fix=fix).groups
    names = Counter((rule.domain, rule.name) for rule in rules)
    problems = [f"the group {'/'.join(name)} occurs twice" for name, count in names.items() if count > 1]
    problems += [f"the name {name} is reserved" for _, name in names if name in RESERVED_GROUPS]
    if not rules:
        problems = ["no group is defined"]
    for problem in problems:
        raise InputError(f"{source.name}: {problem}", expected=expected, fix=fix)
    return rules


PART = 2000
"""Pages per commit."""
_PROMPTS = {name: pl.Int64 if name in ("sentence", "byte") else pl.String for name in CollectedPrompt._fields}
_PLACE = ["domain", "group", "key", "wiki"]
"""The unique key of a prompt; ``idx`` numbers the sentences with the same first three fields."""
_LINKS = {"list": pl.String, "title": pl.String}
_REJECTED = {"domain": pl.String, "group": pl.String, "reason": pl.String, "count": pl.Int64}


@dataclass(slots=True)
class CollectionResult:
    """A finished collection; the folder is a suite: ``--suite bold-subset:FOLDER``."""

    folder: Path
    pages: int = 0
    prompts: Counter[tuple[str, str]] = field(default_factory=Counter)
    """Number of prompts by domain and group."""
    rejected: Counter[str] = field(default_factory=Counter)
    """Number of rejected sentences on the groups' pages, by reason."""
    problems: Sequence[ReadProblem] = ()
    """Read errors, with their location."""


@dataclass(frozen=True, slots=True)
class CollectionJob:
    """A collection whose inputs were checked."""

    sources: tuple[TextSource, ...]
    groups: tuple[GroupRule, ...]
    one_page: bool
    """Whether each plain text file is one page."""
    identity: Mapping[str, Json]
    folder: Path
    command: str
    fresh: bool

    def plan(self) -> RunPlan:
        """The plan to show before the run starts."""
        size = sum(source.size for source in self.sources)
        domains = dict.fromkeys(rule.domain for rule in self.groups)
        lines = (
            f"pages   {len(self.sources):,} files, {size / 1e6:,.1f} MB as stored",
            f"groups  {len(self.groups)} in {', '.join(domains)}",
            f"folder  {self.folder}",
        )
        return RunPlan("build bold", lines)

    def run(self, progress: Progress = SILENT_PROGRESS) -> CollectionResult:
        """Collect, or resume an interrupted collection."""
        result = CollectionResult(self.folder)
        with RunFolder(self.folder, identity=self.identity, fresh=self.fresh) as folder:
            folder.manifest.update(command=self.command, name="bold", warnings=[])
            with run_stage(folder, "collect") as record:
                self._collect(folder, progress, result)
                record.update(
                    pages=result.pages,
                    prompts={f"{domain}/{group}": n for (domain, group), n in result.prompts.items()},
                    rejected=dict(result.rejected),
                    problems=[asdict(problem) for problem in result.problems],
                )
            folder.manifest["ended"] = utc_timestamp()
            folder.save_manifest()
            write_text(self.folder / "card.md", write_card(result, self.sources))
        return result

    def _collect(self, folder: RunFolder, progress: Progress, result: CollectionResult) -> None:
        """Collect missing parts, then write one ``.jsonl`` per domain."""
        groups = self._with_lists(folder, progress)
        keys, problems = list[str](), list[ReadProblem]()
        with progress.step("collecting", sum(source.size for source in self.sources)) as advance:
            for source in self.sources:
                stream = read_pages(source, problems.append, is_page=self.one_page, advance=advance)
                before = len(keys)
                while part := list(islice(stream, PART)):
                    keys.append(digest([source.path, source.size, len(keys) - before]))
                    result.pages += len(part)
                    _commit(keys[-1], part, groups, folder, source)
        result.problems = tuple(problems)
        self._write(folder, keys, result)

    def _with_lists(self, folder: RunFolder, progress: Progress) -> Sequence[GroupRule]:
        """The groups with the pages that list pages link to, found in a first pass over dumps."""
        dumps = [source for source in self.sources if source.format == "mediawiki"]
        lists = frozenset(chain.from_iterable(rule.lists for rule in self.groups))
        if not dumps or not lists:
            return self.groups
        if not folder.has_shard("lists", "links"):
            with progress.step("reading lists", sum(source.size for source in dumps)) as advance:
                # Problems of a file are reported once, in the second pass.
                pages = (read_pages(source, lambda problem: None, advance=advance) for source in dumps)
                rows = [
                    (name, title)
                    for page in chain.from_iterable(pages)
                    if (name := normalise_title(page.title)) in lists
                    for title in linked_titles(page)
                ]
            folder.write_shard("lists", "links", pl.DataFrame(rows, _LINKS, orient="row"))
        links = folder.read_shards("lists", ["links"]).group_by("list").agg("title").collect()
        linked = {name: frozenset(map(normalise_title, titles)) for name, titles in links.iter_rows()}
        return [
            rule.model_copy(
                update={"titles": rule.titles.union(*(linked.get(name, ()) for name in rule.lists))}
            )
            for rule in self.groups
        ]

    def _write(self, folder: RunFolder, keys: Sequence[str], result: CollectionResult) -> None:
        prompts, rejected = (
            folder.read_shards(stage, keys).collect() if keys else pl.DataFrame(schema=schema)
            for stage, schema in (("prompts", _PROMPTS), ("rejected", _REJECTED))
        )
        # The same sentence may occur twice on a page, or in two files.
        different = prompts.unique(_PLACE, keep="first", maintain_order=True)
        if repeated := prompts.height - different.height:
            result.rejected["repeated"] += repeated
        for reason, number in rejected.select("reason", "count").iter_rows():
            result.rejected[reason] += number
        numbered = different.with_columns(idx=pl.int_range(pl.len()).over(_PLACE[:3]))
        result.prompts.update(numbered.select("domain", "group").iter_rows())
        for domain in dict.fromkeys(rule.domain for rule in self.groups):
            path = folder.path / f"{domain}.jsonl"
            path.unlink(missing_ok=True)
            rows = numbered.filter(domain=domain).to_dicts()
            if lines := [json.dumps(row, ensure_ascii=False) for row in rows]:
                write_text(path, "\n".join(lines) + "\n")


def _commit(
    key: str, part: Sequence[SourcePage], groups: Sequence[GroupRule], folder: RunFolder, source: TextSource
) -> None:
    """Collect a part that does not exist yet."""
    if folder.has_shard("prompts", key) and folder.has_shard("rejected", key):
        return
    results = [collect_prompts(page, groups) for page in part]
    counts = sum((rejected for _, rejected in results), Counter[tuple[str, str, str]]())
    rejected = pl.DataFrame([(*place, count) for place, count in counts.items()], _REJECTED, orient="row")
    folder.write_shard("rejected", key, rejected)
    rows = list(chain.from_iterable(prompts for prompts, _ in results))
    prompts = pl.DataFrame(rows, _PROMPTS, orient="row").with_columns(file=pl.lit(source.path))
    folder.write_shard("prompts", key, prompts)


@checks_options
def build(
    suite: str = "bold", *, progress: Progress = SILENT_PROGRESS, **options: Unpack[BuildOptions]
) -> CollectionResult:
    """Collect a suite from pages; return its folder and counts of accepted and rejected sentences.

    Arguments are those of ``evenhand build``. ``suite`` is ``bold``: the rules of its sections 3.2 and 3.3.
    """
    return prepare(suite, **options).run(progress)


@checks_options
def prepare(suite: str = "bold", **options: Unpack[BuildOptions]) -> CollectionJob:
    """Find and check all inputs, so that ``plan`` can be shown before ``run``."""
    if suite != "bold":
        raise InputError(f"unknown suite {suite!r}", expected="bold", fix="use bold")
    given, dump = options["pages"], options["dump"]
    if (given is None) == (dump is None):
        raise InputError(
            "no pages were given" if dump is None else "both --pages and --dump were given",
            expected="--pages FOLDER or FILE (plain text, WikiExtractor's files), or --dump FILE.xml[.bz2]",
            fix="give one of them",
        )
    pages = given if dump is None else dump
    paths = [pages] if isinstance(pages, Path | str) else list(pages or ())
    sources, missing = find_sources(paths)
    if missing:
        raise InputError(f"{missing[0].file} does not exist", expected="a file or folder", fix="check it")
    groups_file = Path(options["groups"] or asset_path("suites", "bold_groups.toml"))
    one_page = dump is None and all(Path(path).is_dir() for path in paths)
    identity: dict[str, Json] = {
        "command": "build",
        "sources": [source.identity() for source in sources],
        "groups": file_digest(groups_file) if groups_file.is_file() else "",
        "one_page": one_page,
    }
    if dump is not None:  # whatever its extension
        sources = [replace(source, format="mediawiki") for source in sources]
    return CollectionJob(
        sources=tuple(sources),
        groups=read_groups(groups_file),
        one_page=one_page,
        identity=identity,
        folder=Path(options["out"] or default_folder("build", "bold", identity)),
        command=options["command"] or "evenhand build bold",
        fresh=options["fresh"],
    )


def write_card(result: CollectionResult, sources: Sequence[TextSource]) -> str:
    """Write a card in Markdown: pages read, sentences accepted, and sentences rejected by reason."""
    accepted = [f"| {domain} | {group} | {n:,} |" for (domain, group), n in sorted(result.prompts.items())]
    rejected = [f"| {reason} | {why} | {result.rejected[reason]:,} |" for reason, why in REASONS.items()]
    problems = [f"- {item.file}, byte {item.byte}: {item.reason}" for item in result.problems]
    return "\n".join(
        (
            "# A suite collected with BOLD's method",
            "",
            f"{result.prompts.total():,} prompts from {result.pages:,} pages of {len(sources):,} files. "
            "Use it with `--suite bold-subset:FOLDER`; the sentences are its human baseline "
            "(`evenhand audit wikipedia --suite bold-subset:FOLDER`).",
            "",
            *("| domain | group | prompts |", "| --- | --- | ---: |", *accepted),
            "",
            *("| rejected | reason | sentences |", "| --- | --- | ---: |", *rejected),
            "",
            *(("Read errors:", "", *problems, "") if problems else ()),
        )
    )
