"""Tables of texts that people bring: JSONL, CSV, TSV, Parquet, all read as columns of strings."""

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
"""Bytes of text read into memory at most."""
_MOST_ROWS = 100_000_000
"""Rows of a Parquet file at most: a few kilobytes can say that a row comes a billion times."""
_MOST_CELLS = 250_000_000
"""Cells of a table at most, the missing ones too: each takes 16 bytes, whatever it holds."""
_PART_OF_LIST = 10
"""Cells that a value inside a list or struct counts as: on the way to JSON it is a Python object."""
_JSON_ROWS = 1 << 16
"""Rows of lists or structs that are made into JSON at a time."""

_WIDEST = 10_000
"""Columns of a table at most: fields that no two rows share make columns without end."""

PARQUET_ERRORS = (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError, ValueError, OverflowError)
"""What reading a damaged Parquet file raises; the library panics over some."""
FORMATS = ".jsonl, .ndjson, .csv, .tsv or .parquet (each but Parquet also .gz)"


def read_table(path: Path, columns: Mapping[str, str | None] | None = None) -> pl.DataFrame:
    """The rows of a file, every column as text: numbers as written, NaN and empty cells as null.

    Lists and objects become JSON text. Bytes that are not UTF-8 become U+FFFD, which later stages exclude
    with a reason.

    Args:
        path: The file.
        columns: The wanted columns by the option that names each; a missing one is an error. Of a Parquet
            file no other column is read. All columns by default.
    """
    if not path.is_file():
        raise InputError(
            f"{path} is {'a folder' if path.is_dir() else 'not there'}",
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
    """The names of a table's columns; of Parquet nothing else is read."""
    if path.is_file() and path.suffix.lower() == ".parquet":
        with _naming_damage(path):
            return list(check_parquet(path).columns)
    return read_table(path).columns


def read_lines(path: Path) -> list[str]:
    """The lines of a text file, which may be packed (.gz); bytes that are not UTF-8 become U+FFFD."""
    text = read_bytes(path).decode("utf-8", "replace")
    # Not splitlines: a text may hold U+2028 and other breaks that end no line of a file.
    lines = text.replace("\r\n", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def require_columns(names: Sequence[str], columns: Mapping[str, str | None], path: Path) -> None:
    """An error naming the first option whose column is not among the names of a table's columns."""
    # A whole header became one column, as with spreadsheets of some countries.
    is_one = len(names) == 1 and ";" in names[0]
    fix = "its cells stand between semicolons: save it with commas, or with tabs as .tsv" if is_one else ""
    for option, column in columns.items():
        if column is not None and column not in names:
            raise InputError(
                f"{path} has no column {column!r} ({option})",
                expected=", ".join(filter(None, names)) or "a table whose columns have names",
                fix=fix or f"name one of these columns with {option}",
            )


def read_cells(path: Path, columns: Sequence[str]) -> list[tuple[str, ...]]:
    """The cells of a table's columns, row by row; an empty cell is an empty text."""
    table = read_table(path)
    if missing := [name for name in columns if name not in table.columns]:
        raise InputError(
            f"{path} has no column {', '.join(missing)}; it has {', '.join(table.columns)[:500]}",
            expected=f"the columns {', '.join(columns)}",
            fix="write the file again, or rename its columns",
        )
    return list(table.select(pl.col(*columns).fill_null("")).iter_rows())


def read_bytes(path: Path) -> bytes:
    """The bytes of a file, unpacked if it ends in .gz, without a byte order mark."""
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
            fix="split it, convert it to Parquet, or unpack it yourself where you trust it",
        )
    if content[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        raise InputError(f"{path} is UTF-16", expected="UTF-8", fix="save it as UTF-8")
    return content.removeprefix(codecs.BOM_UTF8)


def read_json_lines(path: Path) -> Iterator[tuple[int, Mapping[str, Json]]]:
    """The objects of a file of JSON lines, each with the number of its line."""
    for number, line in enumerate(read_bytes(path).split(b"\n"), start=1):
        if line.strip():
            yield number, _parse_line(line.decode("utf-8", "replace"), number, path)


def text_table(rows: Iterable[Mapping[str, str | None]], path: Path) -> pl.DataFrame:
    """The rows as columns of text; a field that a row lacks is null."""
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
                fix="leave out what differs from row to row",
            )
        _require_cells(path, height * len(columns), len(columns))
    for cells in columns.values():
        cells.extend([None] * (height - len(cells)))
    # A name may hold a lone surrogate as a text may.
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
    """A value of JSON as text: null and NaN as null, lists and objects as JSON."""
    if value is None or (isinstance(value, float) and not math.isfinite(value)):
        return None
    try:
        text = value if isinstance(value, str) else canonical_json(value)
    except ValueError:  # NaN inside a list or an object: it stays, as it was written
        text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    # Polars strings are UTF-8: a lone surrogate written as \udXXX is damage, like any other.
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _read_csv(path: Path, separator: str) -> pl.DataFrame:
    # Decoding here, not in Polars, keeps damaged bytes visible as U+FFFD in every version of it.
    content = read_bytes(path).decode("utf-8", "replace").encode()
    read = partial(pl.read_csv, separator=separator, infer_schema=False)
    try:
        width = read(io.BytesIO(content), n_rows=0).width
        # A row may be shorter than the header: the cells that it lacks take memory too.
        if width > _WIDEST or width * (content.count(b"\n") + 1) > _MOST_CELLS:
            rows = read(io.BytesIO(content), columns=[0]).height
            _require_cells(path, rows * width, width)
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
    """The table of a Parquet file as it is stored, or the wanted columns of it; see `read_table`.

    What would not fit into memory is refused, by the headers of the file before anything else is read.
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
        # Texts that rows share are in memory once until here.
        size = sum(text_size(column) for column in table.iter_columns())
    if size > _LARGEST:
        raise _too_large(path, f"{size >> 20:,} MiB of text")
    return table


def _require_room(path: Path, headers: ParquetHeaders, names: Sequence[str]) -> None:
    """An error where a Parquet file, or some of its columns, would not fit into memory."""
    wanted = [headers.columns[name] for name in names]
    cells = sum(column.values * (_PART_OF_LIST if column.is_nested else 1) for column in wanted)
    size = sum(column.size for column in wanted)
    for amount, limit, words in (
        (headers.rows, _MOST_ROWS, f"{headers.rows:,} rows"),
        (len(headers.columns), _WIDEST, f"{len(headers.columns):,} columns"),
        (cells, _MOST_CELLS, f"{cells:,} cells in {len(names):,} columns"),
        (size, _LARGEST, f"{size >> 20:,} MiB"),
    ):
        if amount > limit:
            raise _too_large(path, words)


def _require_cells(path: Path, cells: int, columns: int) -> None:
    """An error where a table has more columns or cells, the missing ones too, than are read into memory."""
    if columns > _WIDEST:
        raise _too_large(path, f"{columns:,} columns")
    if cells > _MOST_CELLS:
        raise _too_large(path, f"{cells:,} cells in {columns:,} columns")


def _too_large(path: Path, size: str) -> InputError:
    return InputError(
        f"{path} holds {size}, too much to read into memory",
        expected=f"at most {_MOST_ROWS:,} rows, {_WIDEST:,} columns, {_MOST_CELLS:,} cells (a value inside a "
        f"list counts as {_PART_OF_LIST}) and {_LARGEST >> 30} GiB of text",
        fix="split the file, or leave out the columns and lists that are not needed",
    )


@contextmanager
def _naming_damage(path: Path) -> Iterator[None]:
    try:
        yield
    except PARQUET_ERRORS as error:
        raise InputError(
            f"{path} is not a Parquet file we can read: {first_error_line(error)}",
            expected="Parquet",
            fix="write the file again, or get it again",
        ) from error


def text_size(column: pl.Series) -> int:
    """Bytes of the texts of a column, those inside lists and structs too."""
    if isinstance(column.dtype, pl.List | pl.Array):
        return text_size(column.explode())
    if isinstance(column.dtype, pl.Struct):
        return sum(text_size(part) for part in column.struct.unnest().iter_columns())
    return int(text_sizes(column).sum())


def text_sizes(column: pl.Series) -> pl.Series:
    """Bytes of the text in each cell of a column without lists; 0 for what is no text."""
    if column.dtype == pl.String:
        sizes = column.str.len_bytes()
    elif column.dtype == pl.Binary:
        sizes = column.bin.size()
    elif column.dtype in (pl.Categorical, pl.Enum):
        sizes = column.cat.len_bytes()
    else:
        sizes = pl.repeat(0, len(column), eager=True)
    # Sums of 32-bit numbers have 32 bits themselves and wrap around.
    return sizes.fill_null(0).cast(pl.Int64)


def first_error_line(error: BaseException) -> str:
    """What an error says, on one line of at most 300 letters: some repeat what they could not read."""
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
"""The beginning of what is taken for a formula; some spreadsheets take the wide forms too."""
_BEGINS: Final = rf"\A(?=[ ']*[\t\r\n])|(?:\A|(?<=[;\t\r\n]))(?={_FORMULA})"
"""Where one begins: in a cell, and where the cell may be cut. White space at its start is skipped."""
_BARE: Final = re.compile(_BEGINS)
_QUOTED: Final = re.compile(rf"\A'(?=[ ']*[\t\r\n])|(?:\A|(?<=[;\t\r\n]))'(?={_FORMULA})")


def guard_cell(cell: str) -> str:
    """The cell as a spreadsheet shows it and does not run it: a quote before what begins like a formula.

    >>> guard_cell("=1+1"), guard_cell("a;=1+1"), guard_cell("-1"), guard_cell("plain")
    ("'=1+1", "a;'=1+1", '-1', 'plain')
    """
    return cell if number_or_none(cell) is not None else _BARE.sub("'", cell)


def unguard_cell(cell: str) -> str:
    """What `guard_cell` was given; a cell that it did not make stays as it is."""
    bare = _QUOTED.sub("", cell)
    return bare if guard_cell(bare) == cell else cell


def spreadsheet_csv(table: pl.DataFrame, *, decimals: int | None = None) -> str:
    """The table as CSV, with every text guarded and in quotes."""
    return guard_table(table).write_csv(quote_style="non_numeric", float_precision=decimals)


def guard_table(table: pl.DataFrame) -> pl.DataFrame:
    """The table with every text guarded, names of columns too."""
    return _map_cells(table, guard_cell)


def unguard_table(table: pl.DataFrame) -> pl.DataFrame:
    """What `guard_table` was given."""
    return _map_cells(table, unguard_cell)


def _map_cells(table: pl.DataFrame, change: Callable[[str], str]) -> pl.DataFrame:
    texts = [name for name, kind in table.schema.items() if kind == pl.String]
    return table.with_columns(
        pl.col(name).map_elements(change, return_dtype=pl.String, skip_nulls=True) for name in texts
    ).rename(change)
