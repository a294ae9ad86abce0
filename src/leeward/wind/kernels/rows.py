"""Named tuples of numbers in arrays: a field in each row and a tuple in each column, or side by side in a record."""

from collections.abc import Callable
from typing import Any, NamedTuple

from leeward.wind.kernels.compile import formula

# Every field is written out: a loop over the fields of a tuple prevents the vectorisation of the loop around it, and a
# compiled function cannot make a tuple of a variable number of fields.
TEXT = """
def read(rows, first, column):
    return kind({read})

def write(rows, first, column, values):
    {write}

def read_record(records, element, rank, first):
    return kind({read_record})

def write_record(records, element, rank, first, values):
    {write_record}

def weighted_sum(one, weight, other, other_weight):
    return kind({weighted_sum})

def join(one, other):
    return {one}, {other}

def moved(joined, step):
    return kind({moved})
"""


class TupleRows(NamedTuple):
    """Functions for the named tuples of one class in arrays. `first`: the row of the first field.

    read(rows, first, column) and write(rows, first, column, values): in an array of shape (rows, columns)
    read_record(records, element, rank, first), write_record(records, element, rank, first, values): in an array of
    shape (elements, ranks, fields)
    weighted_sum(one, weight, other, other_weight): of two tuples, field by field
    join(one, other): the fields of both, as a plain tuple
    moved(joined, step): one + step * other, from the result of `join`
    """

    size: int
    read: Callable[..., Any]
    write: Callable[..., Any]
    read_record: Callable[..., Any]
    write_record: Callable[..., Any]
    weighted_sum: Callable[..., Any]
    join: Callable[..., Any]
    moved: Callable[..., Any]


def tuple_rows(kind: Any) -> TupleRows:
    """Return the functions for the named tuples of this class."""
    fields = range(len(kind._fields))
    place, record = "rows[first + {0}, column]", "records[element, rank, first + {0}]"

    def each(text: str, between: str = ", ") -> str:
        return between.join(text.format(i) for i in fields)

    text = TEXT.format(
        read=each(place),
        write=each(f"{place} = values[{{0}}]", "; "),
        read_record=each(record),
        write_record=each(f"{record} = values[{{0}}]", "; "),
        weighted_sum=each("one[{0}] * weight + other[{0}] * other_weight"),
        one=each("one[{0}]"),
        other=each("other[{0}]"),
        moved=each(f"joined[{{0}}] + step * joined[{{0}} + {len(fields)}]"),
    )
    made: dict[str, Any] = {"kind": kind, "__name__": __name__}
    exec(text, made)
    return TupleRows(len(fields), *(formula(made[name]) for name in TupleRows._fields[1:]))
