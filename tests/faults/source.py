"""Which source the fault tests run on: its commit, and the digest of every file of the package."""

import hashlib
import subprocess
from pathlib import Path


def digest_of(package: Path) -> str:
    """Return a SHA-256 over the names and contents of all files of a package, byte code left out."""
    total = hashlib.sha256()
    for path in sorted(package.rglob("*")):
        if path.is_file() and "__pycache__" not in path.parts:
            content = hashlib.sha256(path.read_bytes()).hexdigest()
            total.update(f"{path.relative_to(package).as_posix()} {content}\n".encode())
    return total.hexdigest()


def commit_of(folder: Path) -> str:
    """Return the commit that is checked out here, with a + where files were changed since; "" where there is no git."""
    head = _git(folder, "rev-parse", "HEAD")
    return head + ("+" if head and _git(folder, "status", "--porcelain", "--untracked-files=no") else "")


def _git(folder: Path, *arguments: str) -> str:
    try:
        done = subprocess.run(["git", *arguments], cwd=folder, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
