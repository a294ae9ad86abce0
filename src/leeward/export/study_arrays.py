"""Export a study as arrays: a NetCDF file or a Zarr folder. Series are written result by result."""

import io
import os
import time
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from leeward import __version__
from leeward.errors import InputError, StorageError
from leeward.files import rename, sync, sync_folder
from leeward.store import workspace
from leeward.wording import printable

if TYPE_CHECKING:
    import xarray

    from leeward.store import Evaluations

NEEDS_ZARR = "Zarr needs the package zarr, which is not installed: pip install zarr"
SERIES = ("farm_power_mw", "turbine_power_mw")
BLOCK = 1 << 26  # bytes of the scenarios that are written to Zarr at once
CHUNK = 1 << 20  # bytes of a chunk of a series, about
PIECE = 1 << 24


def study_dataset(evaluations: "Evaluations") -> "xarray.Dataset":
    """Return `Evaluations.to_xarray` with the attributes of a file."""
    dataset = evaluations.to_xarray()
    name = printable(str(evaluations.attributes.get("campaign_name", "")))
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    dataset.attrs = {
        "Conventions": "CF-1.11",
        "title": "Wind-farm layouts under scenarios" + (f": {name}" if name else ""),
        "source": f"leeward {__version__}",
        "history": f"{now} leeward {__version__}: exported from {printable(evaluations.path.name)}",
        **({"study_name": name} if name else {}),
    }
    return dataset


def netcdf_pieces(evaluations: "Evaluations") -> Iterator[bytes]:
    """Yield the whole file, built in memory, because libhdf5 can crash on a full disk.

    The memory is that of the compressed file: series are read and compressed one result at a time.
    """
    import h5netcdf

    dataset = study_dataset(evaluations)
    series = [name for name in SERIES if name in dataset]
    content = io.BytesIO()
    dataset.drop_vars(series).to_netcdf(content, engine="h5netcdf")
    if series:
        with h5netcdf.File(content, "a") as file:
            for name in series:
                _add_series(file, dataset[name])
    whole = content.getbuffer()
    for start in range(0, len(whole), PIECE):
        yield bytes(whole[start : start + PIECE])


def _add_series(file: Any, array: "xarray.DataArray") -> None:
    """Write a variable to an open NetCDF file, one target and scenario at a time."""
    chunks = (1, 1, 1, *_chunk_lengths(array.shape[3:]))
    options = {"chunks": chunks, "compression": "gzip", "compression_opts": 4, "shuffle": True, "fillvalue": np.nan}
    variable = file.create_variable(array.name, array.dims, np.float64, **options)
    for name, value in array.attrs.items():
        variable.attrs[name] = value
    variable.attrs["coordinates"] = "target_idx scenario_name weight"
    for target in range(array.sizes["target"]):
        for scenario in range(array.sizes["scenario"]):
            values = array[target, scenario].values
            if not np.isnan(values).all():
                variable[target, scenario] = values


def _chunk_lengths(inner: tuple[int, ...]) -> tuple[int, ...]:
    """Return the lengths of a chunk along time and, if there is one, turbine."""
    steps, *turbines = inner
    per_step = 8 * int(np.prod(turbines, dtype=np.int64))
    return (max(1, min(steps, CHUNK // max(per_step, 1))), *turbines)


def write_zarr(evaluations: "Evaluations", output: Path) -> None:
    """Write a Zarr folder (format 2), a few scenarios at a time. It appears complete or not at all."""
    try:
        import zarr  # noqa: F401
    except ImportError as error:
        raise InputError(NEEDS_ZARR) from error
    target = Path(os.path.realpath(output))
    if target.exists() and not _is_zarr(target):
        raise InputError(f"{output}: exists and is not a Zarr folder; choose another name")
    dataset = study_dataset(evaluations)
    try:
        with workspace(target) as folder:
            new = folder / "new.zarr"
            _write_blocks(dataset, new)
            _sync_all(new)
            if target.exists():
                rename(target, folder / "old.zarr")
            rename(new, target)
        sync_folder(target.parent)
    except OSError as error:
        raise StorageError(f"{output}: cannot be written ({error}); no partial folder is left") from error


def _write_blocks(dataset: "xarray.Dataset", folder: Path) -> None:
    scenarios = dataset.sizes["scenario"]
    per_scenario = sum(variable.nbytes for variable in dataset.data_vars.values()) // max(scenarios, 1)
    step = max(1, min(scenarios, BLOCK // max(per_scenario, 1)))
    varying = [name for name in dataset.variables if "scenario" in dataset[name].dims]
    encoding = {name: {"chunks": _zarr_chunks(dataset[name], step)} for name in dataset.data_vars}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # on metadata that some versions of zarr warn about
        for start in range(0, scenarios, step):
            block = dataset.isel(scenario=slice(start, start + step))
            if start == 0:
                block.to_zarr(folder, mode="w", encoding=encoding, zarr_format=2, consolidated=True)
            else:
                block[varying].drop_vars([name for name in block.variables if name not in varying]).to_zarr(
                    folder, append_dim="scenario", zarr_format=2, consolidated=True
                )


def _zarr_chunks(array: "xarray.DataArray", step: int) -> tuple[int, ...]:
    """Return the lengths of a chunk. Series of several scenarios share one, so that the folder has few files."""
    if array.name not in SERIES:
        return (array.shape[0], step, *array.shape[2:])
    per_case = 8 * int(np.prod(array.shape[3:], dtype=np.int64))
    return (1, max(1, min(step, CHUNK // max(per_case, 1))), 1, *_chunk_lengths(array.shape[3:]))


def _is_zarr(path: Path) -> bool:
    return path.is_dir() and any((path / name).exists() for name in (".zgroup", "zarr.json"))


def _sync_all(folder: Path) -> None:
    """Flush all files and folders below a folder to the disk."""
    for root, _, files in os.walk(folder):
        for name in files:
            handle = os.open(Path(root) / name, os.O_RDONLY)
            try:
                sync(handle)
            finally:
                os.close(handle)
        sync_folder(Path(root))
