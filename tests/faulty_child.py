"""A reading process that goes wrong at one group, each time it gets there: what a damaged file may do to the real one.

Run in its place, with the group and what happens there in the environment: FAULT="farm0_t0_s1 abort". One that falls
silent says so in a file, SILENT in the environment: a child that is only slow is not to be taken for it.
"""

import errno
import os
import sys
import time

from leeward.store import reader_main as reading

NAME, FAULT = os.environ["FAULT"].split()
send_findings = reading._send_findings


class Output(reading.Output):
    def __init__(self, handle, seconds):
        Output.handle = handle
        super().__init__(handle, seconds)


def fall_silent():
    handle = os.open(os.environ["SILENT"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    os.write(handle, f"{os.getpid()}\n".encode())
    os.close(handle)


def faulty(name, *others):
    if FAULT == "hang_all":
        fall_silent()
        time.sleep(1000)
    if name == NAME:
        if FAULT == "abort":
            os.abort()
        if FAULT == "hang":
            fall_silent()
            while True:
                pass
        if FAULT == "sleep":
            fall_silent()
            time.sleep(1000)
        if FAULT == "memory":
            bytearray(100 * 2**30)
        if FAULT == "garbage":
            os.write(Output.handle, b"garbage" * 100)
        if FAULT == "bug":
            raise LookupError("of our own")
    return send_findings(name, *others)


reading._send_findings = faulty
reading.Output = Output
if FAULT == "unborn":
    sys.exit(1)
if FAULT == "unopened":  # the machine has no more handles to give

    def no_handle(path, *others, **options):
        if str(path).endswith(".h5"):
            raise OSError(errno.ENFILE, os.strerror(errno.ENFILE), path)
        return opened(path, *others, **options)

    opened, os.open = os.open, no_handle
if FAULT == "indirect":
    reading.sealed_result_at = lambda *_: None  # so that libhdf5 reads everything
reading.main()
