"""The files of layouts that a study refers to, and the catalogue of the layouts that it uses."""

import functools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np

from leeward.campaign import Campaign, load, open_layouts
from leeward.campaign.resolve import BUILT_IN
from leeward.campaign.selection import chosen_tasks
from leeward.errors import InputError
from leeward.formats.layout_table import TableLayout, read_layouts
from leeward.store import Key, Layouts
from leeward.study.data import NO_NUMBER, Catalogue, Floats
from leeward.study.spec import LayoutsSpec
from leeward.wind.checks import positions
from leeward.wording import listed

Label: TypeAlias = "Key | str"  # a key, or the name of a layout in a CSV file


class Source:
    """A file of layouts. name: its short name in the study."""

    def __init__(self, name: str, spec: LayoutsSpec, folder: Path | None) -> None:
        self.name = name
        self.path = (folder or Path()) / spec.file
        if not self.path.exists():
            raise InputError(f"layouts.{name}: {self.path}: no such file")
        self._campaign = spec.campaign
        if spec.campaign is not None and spec.campaign not in BUILT_IN:
            self._campaign = str((folder or Path()) / spec.campaign)
        self._layouts: Layouts | None = None
        self._table: dict[Label, TableLayout] = {}
        if self.path.suffix.lower() == ".csv":
            self._table = {_label(layout): layout for layout in read_layouts(self.path)}
        else:
            self._layouts = open_layouts(self.path)

    @functools.cached_property
    def campaign(self) -> Campaign:
        """The campaign of the layouts: the given one, or the one in their file."""
        if self._campaign:
            return load(self._campaign)
        text = "" if self._layouts is None else self._layouts.campaign_text
        if not text:
            raise InputError(
                f"layouts.{self.name}: {self.path} does not hold its campaign, so its turbine types are not known; "
                f"give {{file: {self.path.name}, campaign: campaign.yaml}}"
            )
        return Campaign.from_text(text, f"the campaign in {self.path}")

    @property
    def has_campaign(self) -> bool:
        """True if the campaign of the layouts is known."""
        return bool(self._campaign) or (self._layouts is not None and bool(self._layouts.campaign_text))

    @property
    def labels(self) -> Sequence[Label]:
        """The layouts that the file holds."""
        return list(self._table if self._layouts is None else self._layouts)

    def label(self, text: str) -> Label:
        """Return the layout that a text names. Raise InputError if there is none."""
        label: Label = text
        if text not in self._table:
            label = Key.parse(text) if self._table == {} or _is_key(text) else text
        self.demand(label)
        return label

    def demand(self, label: Label) -> None:
        """Raise InputError unless the file holds a layout."""
        known = self._table if self._layouts is None else self._layouts
        if label not in known:
            raise InputError(f"{self.path} has no layout {label}; it holds {len(known)}: {listed(self.labels, 5)}")

    def turbine(self, label: Label) -> Any:
        """Return the turbine type of a layout, as the campaign gives it."""
        number = label.type_idx if isinstance(label, Key) else self._table[label].type_idx
        types = self.campaign.physics.types
        if number is None:
            if len(types) > 1:
                raise InputError(f"{self.path}: {label} has no type_idx, and its campaign has {len(types)} types")
            number = next(iter(types))
        return types[number]

    def places(self, labels: Iterable[Label]) -> dict[Label, tuple[Floats, Floats]]:
        """Return x and y (m) of these layouts."""
        if self._layouts is None:
            return {label: (np.array(self._table[label].x), np.array(self._table[label].y)) for label in labels}
        keys = [label for label in labels if isinstance(label, Key)]
        return {result.key: (result.x, result.y) for result in self._layouts.only(keys).results()}

    def best(self, which: str, only: str | None) -> list[Label]:
        """Return selected layouts: those of `only`, or all; of these the best ones by AEP, if `which` is given."""
        if self._layouts is None:
            if which or only:
                raise InputError(
                    f"layouts.{self.name}: `only` and `best` need a layouts.h5; name layouts of a CSV file"
                )
            return list(self.labels)
        chosen = None if only is None else set(chosen_tasks(self.campaign, only))
        keys = [key for key in self._layouts if chosen is None or key in chosen]
        if not keys:
            raise InputError(f"targets: {only!r} selects none of the {len(self._layouts)} layouts of {self.path}")
        if not which:
            return list(keys)
        length = {"of each farm and type": 2, "of each farm": 1, "of all": 0}[which]
        best: dict[tuple[int, ...], tuple[float, Key]] = {}
        for result in self._layouts.only(keys).results():
            merit = result.aep_gwh / self._layouts.installed_mw(result) if length < 2 else result.aep_gwh
            group = tuple(result.key)[:length]
            if group not in best or (-merit, result.key) < (-best[group][0], best[group][1]):
                best[group] = (merit, result.key)
        return [key for _, (_, key) in sorted(best.items())]

    def close(self) -> None:
        """End the process that reads the file."""
        if self._layouts is not None:
            self._layouts.close()


def _label(layout: TableLayout) -> Label:
    numbers = (layout.farm_idx, layout.type_idx, layout.seed)
    return layout.name or "layout" if None in numbers else Key(*numbers)  # type: ignore[arg-type]


def _is_key(text: str) -> bool:
    try:
        Key.parse(text)
    except InputError:
        return False
    return True


class Shelf:
    """Collects the layouts that a study uses; each gets a number. Positions are read at the end, in `catalogue`."""

    def __init__(self, sources: Mapping[str, Source]) -> None:
        self.sources = sources
        self.turbines: list[Any] = []
        self._known: dict[tuple[str, Label], int] = {}
        self._entries: list[tuple[str, Label | None, int, tuple[Floats, Floats] | None]] = []
        self._turbine_numbers: dict[str, int] = {}
        self._places: dict[tuple[int, bytes, bytes], int] = {}

    @property
    def first(self) -> Source:
        """The first file of layouts."""
        return next(iter(self.sources.values()))

    def source(self, name: str | None) -> Source:
        """Return the file of this short name, or the only one."""
        if name is None and len(self.sources) > 1:
            raise InputError(f"does not name its file of layouts; expected one of {', '.join(self.sources)}")
        if name is not None and name not in self.sources:
            raise InputError(f"names the layouts {name!r}; expected one of {', '.join(self.sources)}")
        return self.first if name is None else self.sources[name]

    def add(self, source: Source, label: Label) -> int:
        """Return the number of a layout of a file. Raise InputError if the file does not hold it."""
        number = self._known.get((source.name, label))
        if number is None:
            source.demand(label)
            number = self._known[source.name, label] = len(self._entries)
            name = f"{source.name}:{label}"
            self._entries.append((name, label, self._turbine(source.turbine(label)), None))
        return number

    def add_places(self, name: str, x: Floats, y: Floats, turbine: Any) -> int:
        """Return the number of turbines at given positions. Equal ones have the same number."""
        number = self._turbine(turbine)
        content = (number, x.tobytes(), y.tobytes())
        if content not in self._places:
            self._places[content] = len(self._entries)
            self._entries.append((name, None, number, positions(x, y)))
        return self._places[content]

    def catalogue(self) -> Catalogue:
        """Return all layouts that were added, with their positions."""
        found: dict[str, tuple[Floats, Floats]] = {}
        for source in self.sources.values():
            wanted = [label for name, label in self._known if name == source.name]
            if wanted:
                for label, (x, y) in source.places(wanted).items():
                    found[f"{source.name}:{label}"] = positions(x, y, f"{source.path}, {label}: ")
        places = [found[name] if place is None else place for name, _, _, place in self._entries]
        keys = [label if isinstance(label, Key) else (NO_NUMBER,) * 3 for _, label, _, _ in self._entries]
        return Catalogue(
            names=[name for name, _, _, _ in self._entries],
            starts=np.cumsum([0, *(len(x) for x, _ in places)]),
            x=np.concatenate([x for x, _ in places]),
            y=np.concatenate([y for _, y in places]),
            turbine=np.array([turbine for _, _, turbine, _ in self._entries], dtype=np.int64),
            keys=np.array(keys, dtype=np.int64).reshape(-1, 3),
        )

    def _turbine(self, turbine: Any) -> int:
        text = turbine.model_dump_json(exclude={"type_idx"})
        if text not in self._turbine_numbers:
            self._turbine_numbers[text] = len(self.turbines)
            self.turbines.append(turbine)
        return self._turbine_numbers[text]
