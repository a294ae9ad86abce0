"""Make the kernel, the initramfs and the root file system of the guests: image.py UNPACKED-PACKAGES FOLDER.

The root file system holds this Python with leeward's dependencies and pytest, at the paths that they have here, the
libraries that these need, busybox, the kernel's modules and the programs of NFS. It is made anew when one of them
changes.
"""

import hashlib
import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

# parts of the standard library
UNUSED = (
    "config-*",
    "ensurepip",
    "idlelib",
    "site-packages",
    "dist-packages",
    "test",
    "tests",
    "tkinter",
    "turtledemo",
)
BOOT_MODULES = ("virtio_pci", "virtio_blk")
INIT = """#!/bin/busybox sh
/bin/busybox mkdir -p /proc /dev /root
/bin/busybox mount -t devtmpfs none /dev
for module in {modules}; do /bin/busybox insmod "/$module"; done
/bin/busybox mount -t ext4 /dev/vda /root
exec /bin/busybox switch_root /root /sbin/init
"""
# the second process of a guest comes with the checkout
SECOND = """#!/bin/busybox sh
/bin/busybox --install -s /usr/local/bin
export PATH=/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mkdir -p /dev/shm
mount -t tmpfs none /dev/shm
mount -t tmpfs none /tmp
mount -t tmpfs none /run
for word in $(cat /proc/cmdline); do
    case $word in checkout=*) checkout=${word#*=} ;; node=*) node=${word#*=} ;; esac
done
mkdir -p "$checkout"
tar -xf /dev/vdb -C "$checkout"
exec sh "$checkout/ci/nfs/guest" "$checkout" "$node"
"""


def main(unpacked: Path, folder: Path) -> None:
    distributions = needed(["leeward", "pytest"])
    key = fingerprint(unpacked, distributions)
    if (folder / "key").exists() and (folder / "key").read_text() == key:
        return
    (folder / "key").unlink(missing_ok=True)
    modules = next((unpacked / "lib/modules").iterdir())
    busybox = unpacked / "bin/busybox"
    subprocess.run([busybox, "depmod", "-b", unpacked, modules.name], check=True)
    shutil.copyfile(next((unpacked / "boot").glob("vmlinuz-*")), folder / "vmlinuz")
    with tempfile.TemporaryDirectory(dir=folder) as stage:
        write_initramfs(Path(stage), busybox, modules, folder / "initramfs")
    with tempfile.TemporaryDirectory(dir=folder) as stage:
        fill_root(Path(stage), unpacked, distributions)
        write_image(Path(stage), folder / "root.ext4")
    (folder / "key").write_text(key)


def needed(names: list[str]) -> dict[str, importlib.metadata.Distribution]:
    """Return the installed distributions of these names, and those that they require, without extras."""
    found: dict[str, importlib.metadata.Distribution] = {}
    while names:
        name = re.sub(r"[-_.]+", "-", names.pop()).lower()
        if name in found:
            continue
        try:
            found[name] = importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:  # required on other systems only
            continue
        names += [re.split(r"[^\w.-]", line)[0] for line in found[name].requires or [] if "extra ==" not in line]
    return found


def fingerprint(unpacked: Path, distributions: dict[str, importlib.metadata.Distribution]) -> str:
    """Return a text that changes with the content of the root file system."""
    versions = sorted(f"{name} {found.version}" for name, found in distributions.items())
    kernel = [path.name for path in (unpacked / "boot").iterdir()]
    parts = [Path(__file__).read_text(), sys.version, sys.prefix, sys.base_prefix, *sorted(kernel), *versions]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def write_initramfs(stage: Path, busybox: Path, modules: Path, target: Path) -> None:
    """Write an archive that mounts the root file system: busybox, and the drivers of its disk."""
    requires = dict(line.split(":", 1) for line in (modules / "modules.dep").read_text().splitlines())
    order: list[str] = []

    def add(module: str) -> None:
        for other in requires[module].split():
            add(other)
        if module not in order:
            order.append(module)

    for name in BOOT_MODULES:
        add(next(module for module in requires if Path(module).name == f"{name}.ko"))
    for module in order:
        shutil.copyfile(modules / module, stage / Path(module).name)
    (stage / "bin").mkdir()
    shutil.copy(busybox, stage / "bin/busybox")
    (stage / "init").write_text(INIT.format(modules=" ".join(Path(module).name for module in order)))
    (stage / "init").chmod(0o755)
    names = "\n".join(str(path.relative_to(stage)) for path in sorted(stage.rglob("*")))
    with target.open("wb") as archive:
        command = [busybox, "cpio", "-o", "-H", "newc"]
        subprocess.run(command, cwd=stage, input=names.encode(), stdout=archive, stderr=subprocess.DEVNULL, check=True)


def fill_root(stage: Path, unpacked: Path, distributions: dict[str, importlib.metadata.Distribution]) -> None:
    for name in ("bin", "sbin", "lib", "lib64"):
        if Path("/", name).is_symlink():
            (stage / "usr" / name).mkdir(parents=True, exist_ok=True)
            (stage / name).symlink_to(f"usr/{name}")
        else:
            (stage / name).mkdir()
    for name in ("dev", "etc", "proc", "run", "sys", "tmp", "root", "usr/local/bin", "var/lib/nfs", "nfs"):
        (stage / name).mkdir(parents=True, exist_ok=True)
    for path in unpacked.rglob("*"):
        inside = path.relative_to(unpacked)
        # links to nowhere and to folders are of no use here
        if path.is_file() and inside.parts[0] != "boot" and inside.parts[:2] != ("usr", "share"):
            copy(path, stage / inside)
    copy_python(stage)
    for distribution in distributions.values():
        for file in distribution.files or []:
            path = Path(os.path.normpath(file.locate()))
            if path.is_file() and "site-packages" in path.parts:
                copy(path, stage / path.relative_to("/"))
    subprocess.run([sys.executable, "-m", "compileall", "-q", "-j", "0", *compiled_folders(stage)], check=False)
    copy_libraries(stage, unpacked)
    copy(unpacked / "bin/busybox", stage / "bin/busybox")
    (stage / "bin/sh").symlink_to("busybox")
    (stage / "sbin/init").write_text(SECOND)
    (stage / "sbin/init").chmod(0o755)
    users = ["root:x:0:0::/root:/bin/sh", "_rpc:x:101:65534::/run:/bin/sh", "nobody:x:65534:65534::/:/bin/sh"]
    (stage / "etc/passwd").write_text("\n".join(users) + "\n")
    (stage / "etc/group").write_text("root:x:0:\nnogroup:x:65534:\n")
    (stage / "etc/hosts").write_text("127.0.0.1 localhost\n10.0.0.1 node-a\n10.0.0.2 node-b\n")
    for name in ("netconfig", "protocols", "services", "rpc"):
        if not (stage / "etc" / name).exists() and Path("/etc", name).exists():
            copy(Path("/etc", name), stage / "etc" / name)


def copy_python(stage: Path) -> None:
    executable = Path(os.path.realpath(sys.executable))
    copy(executable, stage / executable.relative_to("/"))
    for name in ("stdlib", "platstdlib"):
        library = Path(sysconfig.get_path(name, vars={"base": sys.base_prefix, "platbase": sys.base_prefix}))
        shutil.copytree(
            library,
            stage / library.relative_to("/"),
            ignore=shutil.ignore_patterns(*UNUSED),
            dirs_exist_ok=True,
            ignore_dangling_symlinks=True,
        )
    if sys.prefix != sys.base_prefix:
        copy(Path(sys.prefix, "pyvenv.cfg"), stage / Path(sys.prefix, "pyvenv.cfg").relative_to("/"))
        here = stage / Path(sys.executable).relative_to("/")
        here.parent.mkdir(parents=True, exist_ok=True)
        here.symlink_to(executable)


def compiled_folders(stage: Path) -> list[Path]:
    places = {Path(sysconfig.get_path("purelib")), Path(sysconfig.get_path("stdlib"))}
    return [stage / place.relative_to("/") for place in places]


def copy_libraries(stage: Path, unpacked: Path) -> None:
    """Copy the shared libraries that the programs and libraries of the stage need, and that it lacks."""
    folders = {str(path.parent) for path in unpacked.rglob("*.so*")}
    environment = {**os.environ, "LD_LIBRARY_PATH": ":".join(sorted(folders))}
    shown = subprocess.run(
        ["ldd", *elf_files(stage)], env=environment, capture_output=True, text=True, errors="replace", check=False
    ).stdout
    for name in sorted(set(re.findall(r"(?:=> |^\s)(/\S+) \(0x", shown, re.MULTILINE))):
        path = Path(name)
        inside = next(path.relative_to(top) for top in (unpacked, stage, Path("/")) if path.is_relative_to(top))
        if not (stage / inside).exists():
            copy(path, stage / inside)


def elf_files(stage: Path) -> Iterator[str]:
    for path in stage.rglob("*"):
        if path.suffix == ".ko" or path.is_symlink() or not path.is_file():
            continue
        if ".so" in path.name or os.access(path, os.X_OK):
            with path.open("rb") as file:
                if file.read(4) == b"\x7fELF":
                    yield str(path)


def copy(source: Path, target: Path) -> None:
    """Copy a file; a link becomes the file that it points to."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy2(source, target)


def write_image(stage: Path, target: Path) -> None:
    size = sum(path.lstat().st_size // 4096 + 2 for path in stage.rglob("*")) * 4096
    target.unlink(missing_ok=True)
    command = ["mke2fs", "-q", "-t", "ext4", "-O", "^has_journal", "-m", "0", "-E", "root_owner=0:0", "-d", stage]
    environment = {**os.environ, "PATH": f"{os.environ['PATH']}:/usr/sbin:/sbin"}
    # it says that it creates the file
    subprocess.run(
        [*command, target, f"{size * 5 // 4096 + (128 << 10)}k"], env=environment, stdout=subprocess.DEVNULL, check=True
    )


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
