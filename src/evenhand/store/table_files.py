"""Tables of texts that users supply: JSONL, CSV, TSV, Parquet, all read as string columns."""

from __future__ import annotations

import codecs
import gzip
import io
import json
import math
import re
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

import polars as pl

from evenhand.core import regular_files
from evenhand.core.digests import Json, canonical_json
from evenhand.core.errors import InputError
from evenhand.core.files import MAX_RATIO, max_decompressed_size
from evenhand.stats.label_scales import number_or_none
from evenhand.store.parquet import ParquetHeaders, check_parquet, read_parquet

_LARGEST = 4 << 30
"""Maximum bytes of text read into memory."""
_MOST_ROWS = 100_000_000
"""Maximum rows of a Parquet file: a few kilobytes can repeat a row a billion times."""
_MOST_CELLS = 250_000_000
"""Maximum cells of a table, including nulls: each takes 16 bytes, whatever it holds."""
_PART_OF_LIST = 10
"""Cells that a value in a list or struct counts as: it becomes a Python object on the way to JSON."""
_JSON_ROWS = 1 << 16
"""Rows of lists or structs converted to JSON at a time."""

_WIDEST = 10_000
"""Maximum columns of a table: rows that share no fields would create columns without limit."""

PARQUET_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, OverflowError)
"""Errors from reading a damaged Parquet file; the library panics on some."""
FORMATS = ".jsonl, .ndjson, .csv, .tsv or .parquet (each but Parquet also .gz)"


def read_table(path: Path, columns: Mapping[str, str | None] | None = None) -> pl.DataFrame:
    """The rows of a file, with every column as text: numbers as written, NaN and empty cells as null.

    Lists and objects become JSON text. Bytes that are not UTF-8 become U+FFFD, which later stages exclude
    with a reason. ``columns`` are those to read, by the option that names each; a missing one is an error. Of
    a Parquet file no other column is read.
    """
    if not path.is_file():
        raise InputError(
            f"{path} {'is a folder' if path.is_dir() else 'does not exist'}",
            expected=f"a file: {FORMATS}",
            fix="check the path",
        )
    suffix = Path(path.name.lower().removesuffix(".gz")).suffix
    if suffix == ".parquet":
        stored = load_parquet(path, columns)
        with _naming_damage(path):
            table = to_text_table(stored)
    elif suffix in (".jsonl", ".ndjson"):
        rows = ({name: to_cell(value) for name, value in row.items()} for _, row in read_json_lines(path))
        table = text_table(rows, path)
    elif suffix in (".csv", ".tsv"):
        table = _read_csv(path, "\t" if suffix == ".tsv" else ",")
    else:
        raise InputError(
            f"{path} ends in {suffix or 'nothing'}", expected=FORMATS, fix="convert or rename the file"
        )
    if table.height == 0:
        raise InputError(f"{path} has no rows", expected="at least one text", fix="check the file")
    require_columns(table.columns, columns or {}, path)
    return table


def column_names(path: Path) -> list[str]:
    """The column names of a table; for Parquet nothing else is read."""
    if path.is_file() and path.suffix.lower() == ".parquet":
        with _naming_damage(path):
            return list(check_parquet(path).columns)
    return read_table(path).columns


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, optionally compressed (.gz); bytes that are not UTF-8 become U+FFFD."""
    text = read_bytes(path).decode("utf-8", "replace")
    # Not splitlines: a text may contain U+2028 and other breaks that do not end a line of the file.
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def require_columns(names: Sequence[str], columns: Mapping[str, str | None], path: Path) -> None:
    """Raise an error that names the first option whose column is not among a table's columns."""
    # The whole header became one column, as with spreadsheets saved in some countries.
    is_one = len(names) == 1 and ";" in names[0]
    fix = "its cells are separated by semicolons: save it with commas, or with tabs as .tsv" if is_one else ""
    for option, column in columns.items():
        if column is not None and column not in names:
            raise InputError(
                f"{path} has no column {column!r} ({option})",
                expected=", ".join(filter(None, names)) or "a table whose columns have names",
                fix=fix or f"name one of these columns with {option}",
            )


def read_cells(path: Path, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The cells of a table's columns, row by row; an empty cell is an empty string."""
    table = read_table(path)
    if missing := [name for name in columns if name not in table.columns]:
        raise InputError(
            f"{path} has no column {', '.join(missing)}; it has {', '.join(table.columns)[:500]}",
            expected=f"the columns {', '.join(columns)}",
            fix="recreate the file, or rename its columns",
        )
    return list(table.select(pl.col(*columns).fill_null("")).iter_rows())


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, decompressed if it ends in .gz, without a byte order mark."""
    try:
        most = _LARGEST
        if path.suffix.lower() == ".gz":
            most = min(most, max_decompressed_size(path.stat().st_size))
            with regular_files.open_regular(path) as raw, gzip.open(raw, "rb") as file:
                content = file.read(most + 1)
        else:
            content = regular_files.read_bytes(path, most=most)
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(
            f"{path} cannot be read: {error}", expected="a readable file", fix="check the file"
        ) from error
    if len(content) > most:
        raise InputError(
            f"{path} unpacks to more than {most >> 20:,} MiB",
            expected=f"at most {_LARGEST >> 30} GiB, and {MAX_RATIO} times the packed size: "
            "higher ratios suggest a decompression bomb",
            fix="split it, convert it to Parquet, or unpack it yourself if you trust it",
        )
    if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        raise InputError(f"{path} is UTF-16", expected="UTF-8", fix="save it as UTF-8")
    return content.removeprefix(codecs.BOM_UTF8)


def read_json_lines(path: Path) -> Iterator[tuple[int, Mapping[str, Json]]]:
    """The objects of a JSON Lines file, each with its line number."""
    for number, line in enumerate(read_bytes(path).split(b"\n"), start=1):
        if line.strip():
            yield number, _parse_line(line.decode("utf-8", "replace"), number, path)


def text_table(rows: Iterable[Mapping[str, str | None]], path: Path) -> pl.DataFrame:
    """The rows as text columns; a missing field is null."""
    columns: dict[str, list[str | None]] = {}
    height = 0
    for row in rows:
        for name, cell in row.items():
            cells = columns.setdefault(name, [])
            cells.extend([None] * (height - len(cells)))
            cells.append(cell)
        height += 1
        if len(columns) > _WIDEST:
            raise InputError(
                f"{path} has more than {_WIDEST:,} fields",
                expected="rows that share their fields",
                fix="leave out the fields that differ from row to row",
            )
        if (amount := height * len(columns)) > _MOST_CELLS:
            _require_limits(path, (amount, _MOST_CELLS, f"{amount:,} cells in {len(columns):,} columns"))
    for cells in columns.values():
        cells.extend([None] * (height - len(cells)))
    # A name may contain a lone surrogate, as a text may.
    sound = {to_cell(name) or "": cells for name, cells in columns.items()}
    return pl.DataFrame(sound, schema=dict.fromkeys(sound, pl.String))


def _parse_line(line: str, number: int, path: Path) -> Mapping[str, Json]:
    advice = {"expected": "one JSON object per line", "fix": "repair that line"}
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} line {number} is not JSON: {error}", **advice) from error
    if not isinstance(row, dict):
        raise InputError(f"{path} line {number} holds a {type(row).__name__}", **advice)
    return row


def to_cell(value: Json) -> str | None:
    """A JSON value as text: null and NaN as null, lists and objects as JSON."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    try:
        text = value if isinstance(value, str) else canonical_json(value)
    except ValueError:  # NaN inside a list or an object: kept as it was written
        text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    # Polars strings are UTF-8: a lone surrogate written as \udXXX counts as damage.
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _read_csv(path: Path, separator: str) -> pl.DataFrame:
    # Decoding here, not in Polars, keeps damaged bytes visible as U+FFFD in every version of it.
    content = read_bytes(path).decode("utf-8", "replace").encode()
    read = partial(pl.read_csv, separator=separator, infer_schema=False)
    try:
        width = read(io.BytesIO(content), n_rows=0).width
        # A row may be shorter than the header: its missing cells take memory too.
        if width > _WIDEST or width * (content.count(b"\n") + 1) > _MOST_CELLS:
            cells = width * read(io.BytesIO(content), columns=[0]).height
            words = f"{cells:,} cells in {width:,} columns"
            _require_limits(path, (width, _WIDEST, f"{width:,} columns"), (cells, _MOST_CELLS, words))
        return read(io.BytesIO(content))
    except pl.exceptions.NoDataError:
        return pl.DataFrame()
    except pl.exceptions.PolarsError as error:
        raise InputError(
            f"{path} is not a table: {first_error_line(error)}",
            expected="a header line, then rows with the same number of cells; quotes doubled inside quotes",
            fix="repair the file, or save it as JSONL",
        ) from error


def load_parquet(path: Path, columns: Mapping[str, str | None] | None = None) -> pl.DataFrame:
    """The table of a Parquet file as it is stored, or only the requested columns; see `read_table`.

    A table that would not fit into memory is rejected by its headers, before anything else is read.
    """
    with _naming_damage(path):
        headers = check_parquet(path)
    names = list(headers.columns)
    if columns is not None:
        require_columns(names, columns, path)
        names = [name for name in names if name in columns.values()]
    _require_room(path, headers, names)
    with _naming_damage(path):
        table = read_parquet(path, names)
        # Up to here, texts that rows share are in memory only once.
        size = sum(text_size(column) for column in table.iter_columns())
    _require_limits(path, (size, _LARGEST, f"{size >> 20:,} MiB of text"))
    return table


def _require_room(path: Path, headers: ParquetHeaders, names: Sequence[str]) -> None:
    """Raise an error if a Parquet file, or its requested columns, would not fit into memory."""
    requested = [headers.columns[name] for name in names]
    cells = sum(column.values * (_PART_OF_LIST if column.is_nested else 1) for column in requested)
    size = sum(column.size for column in requested)
    _require_limits(
        path,
        (headers.rows, _MOST_ROWS, f"{headers.rows:,} rows"),
        (len(headers.columns), _WIDEST, f"{len(headers.columns):,} columns"),
        (cells, _MOST_CELLS, f"{cells:,} cells in {len(names):,} columns"),
        (size, _LARGEST, f"{size >> 20:,} MiB"),
    )


def _require_limits(path: Path, *limits: tuple[int, int, str]) -> None:
    """Raise an error for the first amount above its limit; the words say what the file holds."""
    for amount, limit, words in limits:
        if amount > limit:
            raise InputError(
                f"{path} holds {words}, too much to read into memory",
                expected=f"at most {_MOST_ROWS:,} rows, {_WIDEST:,} columns, {_MOST_CELLS:,} cells (a value "
                f"inside a list counts as {_PART_OF_LIST}) and {_LARGEST >> 30} GiB of text",
                fix="split the file, or leave out the columns and lists that are not needed",
            )


@contextmanager
def _naming_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except PARQUET_ERRORS as error:
        raise InputError(
            f"{path} is not a readable Parquet file: {first_error_line(error)}",
            expected="Parquet",
            fix="recreate the file, or download it again",
        ) from error


def text_size(column: pl.Series) -> int:
    """Size in bytes of a column's texts, including those in lists and structs."""
    if isinstance(column.dtype, pl.List | pl.Array):
        return text_size(column.explode())
    if isinstance(column.dtype, pl.Struct):
        return sum(text_size(part) for part in column.struct.unnest().iter_columns())
    return int(text_sizes(column).sum())


def text_sizes(column: pl.Series) -> pl.Series:
    """Size in bytes of the text in each cell of a column without lists; 0 for other values."""
    if column.dtype == pl.String:
        sizes = column.str.len_bytes()
    elif column.dtype == pl.Binary:
        sizes = column.bin.size()
    elif column.dtype in (pl.Categorical, pl.Enum):
        sizes = column.cat.len_bytes()
    else:
        sizes = pl.repeat(0, len(column), eager=True)
    # Sums of 32-bit numbers are 32 bits wide themselves and overflow.
    return sizes.fill_null(0).cast(pl.Int64)


def first_error_line(error: BaseException) -> str:
    """An error message on one line of at most 300 characters: some repeat the data they could not read."""
    return next(iter(str(error).splitlines()), "")[:300] or type(error).__name__


def to_text_table(table: pl.DataFrame) -> pl.DataFrame:
    """The table with every column as text: NaN as null, lists and objects as JSON."""
    return table.select(_as_text(column) for column in table.iter_columns())


def _as_text(column: pl.Series) -> pl.Series:
    if column.dtype == pl.String:
        return column
    if column.dtype.is_float():
        column = column.fill_nan(None)
    if column.dtype == pl.Duration:
        return column.dt.to_string("iso")
    if column.dtype == pl.Binary:
        cells = [cell and cell.decode("utf-8", "replace") for cell in column.to_list()]
        return pl.Series(column.name, cells, dtype=pl.String)
    if column.dtype.is_nested():
        parts = (part.to_series().to_list() for part in column.to_frame().iter_slices(_JSON_ROWS))
        cells = [None if cell is None else json.dumps(cell, default=str) for part in parts for cell in part]
        return pl.Series(column.name, cells, dtype=pl.String)
    return column.cast(pl.String, strict=False)


_FORMULA: Final = r"(?:[^\S\t\r\n]|['\"])*[=+\-@\uff1d\uff0b\uff0d\uff20]"
"""The start of anything treated as a formula; some spreadsheets accept the full-width forms too."""
_BEGINS: Final = rf"\A(?=[ ']*[\t\r\n])|(?:\A|(?<=[;\t\r\n]))(?={_FORMULA})"
"""Where a formula can start: in a cell, and where the cell may be split. Leading white space is skipped."""
_BARE: Final = re.compile(_BEGINS)
_QUOTED: Final = re.compile(rf"\A'(?=[ ']*[\t\r\n])|(?:\A|(?<=[;\t\r\n]))'(?={_FORMULA})")


def guard_cell(cell: str) -> str:
    """The cell, safe for spreadsheets: with a quote before anything that looks like a formula.

    >>> guard_cell("=1+1"), guard_cell("a;=1+1"), guard_cell("-1"), guard_cell("plain")
    ("'=1+1", "a;'=1+1", '-1', 'plain')
    """
    return cell if number_or_none(cell) is not None else _BARE.sub("'", cell)


def unguard_cell(cell: str) -> str:
    """The inverse of `guard_cell`; other cells are unchanged."""
    bare = _QUOTED.sub("", cell)
    return bare if guard_cell(bare) == cell else cell


def spreadsheet_csv(table: pl.DataFrame, *, decimals: int | None = None) -> str:
    """The table as CSV, with every text guarded and quoted."""
    return guard_table(table).write_csv(quote_style="non_numeric", float_precision=decimals)


def guard_table(table: pl.DataFrame) -> pl.DataFrame:
    """The table with every text guarded, including column names."""
    return _map_cells(table, guard_cell)


def unguard_table(table: pl.DataFrame) -> pl.DataFrame:
    """The inverse of `guard_table`."""
    return _map_cells(table, unguard_cell)


def _map_cells(table: pl.DataFrame, change: Callable[[str], str]) -> pl.DataFrame:
    texts = [name for name, kind in table.schema.items() if kind == pl.String]
    return table.with_columns(
        pl.col(name).map_elements(change, return_dtype=pl.String, skip_nulls=True) for name in texts
    ).rename(change)
