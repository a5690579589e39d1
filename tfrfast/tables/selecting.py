"""The records for which a condition in SQL holds, by DuckDB or Polars."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

from tfrfast.base.arguments import Int64Array
from tfrfast.errors import FeatureError
from tfrfast.features import FixedLen
from tfrfast.reader import Reader
from tfrfast.tables.scanning import Scan, scan

__all__ = ["records_where"]

_RECORD = "record"


def records_where(reader: Reader, condition: str) -> Int64Array:
    """Returns the numbers of the records for which the condition holds, in ascending order.

    The condition may name no feature, as `random() < 0.01` does. A first pass infers the features
    of all records. A second pass decodes the features that the condition names.
    """
    engine = next((each for each in ("duckdb", "polars") if importlib.util.find_spec(each)), None)
    if engine is None:
        raise ImportError(
            "--where needs DuckDB or Polars: pip install duckdb, or pip install polars."
        )
    features = scan(reader, sample=None).features
    named = _named(condition, [*features, _RECORD])
    if _RECORD in features:
        raise ValueError(
            "The records have a feature named 'record', which --where cannot tell from their "
            'numbers. Use tfr.scan(..., record_column="number") and tfr.copy in Python.'
        )
    columns = [*(name for name in named if name != _RECORD), _RECORD]
    if engine == "duckdb":
        _refuse_alike(columns)

    def found(text: list[str]) -> Int64Array:
        rows = scan(reader, features=features, columns=columns, record_column=True, text=text)
        return _by_duckdb(rows, condition) if engine == "duckdb" else _by_polars(rows, condition)

    strings = [name for name in columns if name != _RECORD and _is_string(features[name])]
    try:
        return np.sort(found(strings))
    except ValueError as error:
        if not named:
            known = ", ".join(map(repr, sorted(features)))
            raise ValueError(
                f"{error} The condition names no feature. The records have {known}; names with "
                "other signs than letters, digits and _ stand in double quotes, as in "
                "'\"image/width\" > 100'."
            ) from None
        texts = [name for name in strings if _is_text(reader, name)]
        if texts == strings:
            raise
        return np.sort(found(texts))


# Strings and names in quotes, in which a quote is doubled.
_QUOTED = re.compile(r"""('(?:[^']|'')*'|"(?:[^"]|"")*")""")


def _named(condition: str, names: Sequence[str]) -> list[str]:
    """Returns the names in the condition, in double quotes or outside of quotes."""
    parts = _QUOTED.split(condition)
    quoted = {part[1:-1].replace('""', '"') for part in parts[1::2] if part.startswith('"')}
    plain = " ".join(parts[::2])
    return [
        name
        for name in names
        if name in quoted or re.search(rf"(?<!\w){re.escape(name)}(?!\w)", plain)
    ]


def _refuse_alike(names: Sequence[str]) -> None:
    """Raises ValueError if DuckDB would take one column for another."""
    lower: dict[str, str] = {}
    for name in names:
        if (other := lower.setdefault(name.lower(), name)) != name:
            raise ValueError(
                f"DuckDB does not tell {other!r} from {name!r}. Polars does: use "
                'tfrfast.polars.scan(..., record_column="number") and tfr.copy in Python.'
            )


def _is_text(reader: Reader, name: str) -> bool:
    """True if all values are UTF-8."""
    spec = FixedLen((), "bytes", default=b"")
    try:
        for _ in scan(reader, features={name: spec}, text=[name]):
            pass
    except FeatureError:
        return False
    return True


def _is_string(spec: Any) -> bool:
    return isinstance(spec, FixedLen) and spec.dtype == "bytes"


def _by_duckdb(rows: Scan, condition: str) -> Int64Array:
    import duckdb

    # A foreign condition reads no files, writes no files, and loads no extension.
    closed = {"enable_external_access": "false", "lock_configuration": "true"}
    connection = duckdb.connect(":memory:", config=closed)
    try:
        relation = connection.from_arrow(rows)
        found = relation.filter(_bracketed(condition)).project(_RECORD).fetchnumpy()
    except duckdb.Error as error:
        raise _refused("DuckDB", condition, error) from None
    finally:
        connection.close()
    return np.asarray(found[_RECORD], np.int64)


def _by_polars(rows: Scan, condition: str) -> Int64Array:
    import polars as pl

    parts = _QUOTED.split(condition)
    parts[::2] = [part.replace("==", "=") for part in parts[::2]]
    try:
        chosen = pl.sql_expr(_bracketed("".join(parts)))
        frame = pl.DataFrame(rows).filter(chosen)
    except pl.exceptions.PolarsError as error:
        raise _refused("Polars", condition, error) from None
    return np.asarray(frame[_RECORD], np.int64)


def _refused(engine: str, condition: str, error: Exception) -> ValueError:
    # Later lines show the query around the condition, which the user has not written.
    reason = str(error).replace("\n)", ")").partition("\n")[0]
    return ValueError(f"{engine} refuses {condition!r}: {reason}")


def _bracketed(condition: str) -> str:
    """Returns the condition as one expression. A second statement or clause is a syntax error, and
    a comment after `--` ends with its line.
    """
    return f"({condition}\n)"
