"""A FUSE file system that shows a folder and behaves as asked: `python tests/fuse_folder.py FOLDER MOUNT WORD ...`.

Words: `no-locks` (flock answers EOPNOTSUPP, as on some cluster file systems), `no-links` (link answers EPERM), `rot`
(every byte that is read from a file is the next higher one, as from a failing disk).
"""

import errno
import os
import sys

import mfusepy


class Folder(mfusepy.Operations):
    use_ns = True

    def __init__(self, root, words):
        self.root = root
        self.words = words

    def _path(self, path):
        return self.root + path

    def getattr(self, path, fh=None):
        found = os.lstat(self._path(path)) if fh is None else os.fstat(fh)
        is_still = "rot" in self.words  # without a new time the kernel keeps what it has in memory
        times = {f"st_{name}time": 0 if is_still else getattr(found, f"st_{name}time_ns") for name in "amc"}
        return times | {f"st_{name}": getattr(found, f"st_{name}") for name in ("mode", "nlink", "size", "uid", "gid")}

    def readdir(self, path, fh):
        return [".", "..", *os.listdir(self._path(path))]

    def mkdir(self, path, mode):
        os.mkdir(self._path(path), mode)

    def rmdir(self, path):
        os.rmdir(self._path(path))

    def unlink(self, path):
        os.unlink(self._path(path))

    def rename(self, old, new):
        os.rename(self._path(old), self._path(new))

    def link(self, target, source):
        if "no-links" in self.words:
            raise mfusepy.FuseOSError(errno.EPERM)
        os.link(self._path(source), self._path(target))

    def create(self, path, mode, fi=None):
        return os.open(self._path(path), os.O_RDWR | os.O_CREAT, mode)

    def open(self, path, flags):
        return os.open(self._path(path), flags & ~os.O_APPEND)

    def read(self, path, size, offset, fh):
        found = os.pread(fh, size, offset)
        return bytes((byte + 1) % 256 for byte in found) if "rot" in self.words else found

    def write(self, path, data, offset, fh):
        return os.pwrite(fh, data, offset)

    def truncate(self, path, length, fh=None):
        os.truncate(self._path(path), length)

    def utimens(self, path, times=None):
        os.utime(self._path(path), ns=times)

    def chmod(self, path, mode):
        os.chmod(self._path(path), mode)

    def fsync(self, path, datasync, fh):
        os.fsync(fh)

    def fsyncdir(self, path, datasync, fh):
        return 0

    def flock(self, path, fip, op):
        if "no-locks" in self.words:
            raise mfusepy.FuseOSError(errno.EOPNOTSUPP)
        return 0

    def release(self, path, fh):
        os.close(fh)

    def statfs(self, path):
        found = os.statvfs(self.root)
        return {name: getattr(found, name) for name in dir(found) if name.startswith("f_") and name != "f_fsid"}


if __name__ == "__main__":
    mfusepy.FUSE(Folder(sys.argv[1], sys.argv[3:]), sys.argv[2], foreground=True, nothreads=True, kernel_cache=True)
