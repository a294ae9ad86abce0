"""Clusters of several machines, as far as one can play them: other file systems, other networks, encryption."""

import contextlib
import os
import re
import shutil
import subprocess
import sys

import pytest

from cluster_cases import DaskCluster, assert_tidy, called, leeward, start, wait_for
from leeward import __version__
from leeward.campaign.execution import DaskSpec
from leeward.engines.cluster import links
from leeward.errors import LeewardError
from leeward.store.directory.records import read_record
from leeward.watch import snapshot
from run_cases import PATIENCE_S, audit, digests, kill_group, make_campaign, until

pytest_plugins = ["cluster_fixtures"]
pytestmark = [pytest.mark.cluster, pytest.mark.skipif(sys.platform != "linux", reason="needs Linux: makes namespaces")]


def on(cluster: DaskCluster) -> list[str]:
    return ["--engine", "dask", "--scheduler", cluster.address]


# --- workers that do not see the run directory -----------------------------------------------------------------------


def unsharing(*more: str) -> tuple[str, ...]:
    return ("unshare", *more) if os.geteuid() == 0 else ("unshare", "-r", *more)


def blind_to(folder) -> tuple[str, ...]:
    """A command that starts another one, for which the folder is empty."""
    return (*unsharing("-m"), "sh", "-c", 'mount -t tmpfs none "$0" && exec "$@"', str(folder))


@pytest.fixture
def hidden(tmp_path):
    """A folder for a run, and how to start a worker that does not see into it."""
    folder = tmp_path / "run"
    folder.mkdir()
    tried = subprocess.run([*blind_to(folder), "true"], capture_output=True, text=True, timeout=PATIENCE_S)
    if tried.returncode != 0:
        pytest.skip(f"file systems cannot be mounted in a namespace here: {tried.stderr.strip()}")
    return folder


def workers_shown(run):
    """By `leeward status`."""
    return snapshot(run).workers if (run / "campaign.yaml").exists() else ()


def test_results_of_workers_that_do_not_see_the_run_directory_are_handed_over(tmp_path, hidden, undisturbed):
    """First with such workers only, then with one that sees it, too."""
    orders = {0: "until=seen", 1: "fail=sorry", 2: "die=once"}
    make_campaign(tmp_path, seeds=4, orders=orders, execution={"retries": 1})
    command = ("run", "campaign.yaml", "-o", "run/layouts.h5")
    run = hidden / "layouts.run"
    with DaskCluster(tmp_path / "dask") as own:
        own.add_worker(threads=2, wrap=blind_to(hidden))
        process = start(*command, *on(own), cwd=tmp_path)
        try:
            pid = until(lambda: dict(called(tmp_path)).get(0), "it is computed")
            until(
                lambda: any(
                    (worker.task, worker.pid, worker.looks_hung) == ("farm0_t0_s0", pid, False)
                    for worker in workers_shown(run)
                ),
                "`leeward status` shows which task is computed",
            )
            (tmp_path / "seen").touch()
            assert wait_for(process) == 3
        finally:
            kill_group(process)
        text = (tmp_path / "output.txt").read_text()
        assert len(re.findall("does not see the run directory .*sends its results to this process", text)) == 1
        assert "store their results" not in text
        assert digests(hidden / "layouts.h5") == {
            f"farm0_t0_s{seed}": undisturbed[f"farm0_t0_s{seed}"] for seed in (0, 2, 3)
        }
        assert [path.stem for path in (run / "failures").iterdir()] == ["farm0_t0_s1"]
        record = read_record(run / "failures" / "farm0_t0_s1.json")
        assert (record.failure.kind, len(record.attempts)) == ("exception", 1)
        assert "own_recipe_of_tests.py" in record.failure.traceback
        (retry,) = [line for line in audit(run) if line["event"] == "retry"]
        assert (retry["key"], retry["kind"]) == ("farm0_t0_s2", "died")
        assert_tidy(run, folder=tmp_path)

        own.add_worker()
        for order in (tmp_path / "orders").iterdir():
            order.unlink()
        make_campaign(tmp_path, seeds=6, orders={"all": "until=all"}, execution={"timeout_s": 600})
        before = len(called(tmp_path))
        process = start(*command, *on(own), "--retry-failed", cwd=tmp_path)
        try:
            until(lambda: len({pid for _, pid in called(tmp_path)[before:]}) == 3, "a process for every thread")
            (tmp_path / "all").touch()
            assert wait_for(process) == 0, (tmp_path / "output.txt").read_text()
        finally:
            kill_group(process)
        mixed = (tmp_path / "output.txt").read_text().removeprefix(text)
        assert "does not see the run directory" in mixed
        assert "store their results" in mixed
        assert digests(hidden / "layouts.h5") == undisturbed
        assert sorted(seed for seed, _ in called(tmp_path)) == [0, 1, 1, 2, 2, 3, 4, 5]
        assert not list((run / "failures").iterdir())
        assert_tidy(run, folder=tmp_path)


# --- machines that are cut off ---------------------------------------------------------------------------------------


class Network:
    """Two network namespaces, as two machines, and a bridge between them and this one."""

    def __init__(self) -> None:
        number = self._claim()
        self.subnet = f"10.213.{number}"
        self.nodes = {f"node-{letter}": f"lw{number}{letter}" for letter in "ab"}

    def _claim(self) -> int:
        """A number whose bridge was not there: other tests on this machine, under way or killed, have theirs."""
        for number in range(20, 220):
            self.bridge = f"lwb{number}"
            try:
                _ip("link", "add", self.bridge, "type", "bridge")
            except subprocess.CalledProcessError as error:
                if "File exists" not in error.stderr:
                    raise
            else:
                return number
        raise RuntimeError("all numbers are taken")

    def __enter__(self) -> "Network":
        try:
            _ip("addr", "add", f"{self.subnet}.1/24", "dev", self.bridge)
            _ip("link", "set", self.bridge, "up")
            for name, space in self.nodes.items():
                _ip("netns", "add", space)
                _ip("link", "add", f"v{space}", "type", "veth", "peer", "name", "eth0", "netns", space)
                _ip("link", "set", f"v{space}", "master", self.bridge, "up")
                _ip("-n", space, "addr", "add", f"{self.host(name)}/24", "dev", "eth0")
                for device in ("lo", "eth0"):
                    _ip("-n", space, "link", "set", device, "up")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_) -> None:
        for space in self.nodes.values():
            for arguments in (("netns", "del", space), ("link", "del", f"v{space}")):
                with contextlib.suppress(subprocess.CalledProcessError):
                    _ip(*arguments)
        with contextlib.suppress(subprocess.CalledProcessError):
            _ip("link", "del", self.bridge)

    def host(self, name: str) -> str:
        return f"{self.subnet}.{2 + list(self.nodes).index(name)}"

    def inside(self, name: str) -> tuple[str, ...]:
        """A command that starts another one on that machine."""
        return (
            "ip",
            "netns",
            "exec",
            self.nodes[name],
            "unshare",
            "--uts",
            "sh",
            "-c",
            'hostname "$0" && exec "$@"',
            name,
        )

    def cut_off(self, name: str) -> None:
        _ip("link", "set", f"v{self.nodes[name]}", "down")


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True, timeout=PATIENCE_S)


@pytest.fixture
def network():
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root, and the command ip")
    with contextlib.ExitStack() as stack:
        try:
            made = stack.enter_context(Network())
        except subprocess.CalledProcessError as error:
            pytest.skip(f"network namespaces cannot be made here: {error.stderr.strip()}")
        yield made


def test_a_machine_that_is_cut_off_is_given_up_and_the_run_completes_on_the_other(tmp_path, network):
    make_campaign(tmp_path, seeds=20, orders={"all": "until=go"}, execution={"timeout_s": 600})
    run = tmp_path / "layouts.run"
    environment = {  # how soon a silence is noticed; a machine that stands still for a while is not silent
        "DASK_DISTRIBUTED__SCHEDULER__WORKER_TTL": "60s",
        "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "60s",
    }
    with DaskCluster(tmp_path / "dask", host=f"{network.subnet}.1", environment=environment) as own:
        for name in network.nodes:
            own.add_worker(wrap=network.inside(name), host=network.host(name), wait=False)
        own.wait()
        process = start("run", "campaign.yaml", *on(own), cwd=tmp_path)
        try:
            both = {"node-a", "node-b"}
            until(lambda: {worker.host for worker in workers_shown(run)} == both, "`leeward status` shows both")
            shown = leeward("status", cwd=tmp_path).stdout
            assert all(name in shown for name in both), shown
            network.cut_off("node-a")
            until(lambda: "w0 on node-a is gone" in (tmp_path / "output.txt").read_text(), "the cut is noticed")
            (tmp_path / "go").touch()
            assert wait_for(process) == 0, (tmp_path / "output.txt").read_text()
        finally:
            kill_group(process)
    assert len(digests(tmp_path / "layouts.h5")) == 20
    events = [line["event"] for line in audit(run)]
    assert "failed" not in events
    assert events.count("retry") <= 1


# --- encryption, and versions ----------------------------------------------------------------------------------------


def make_tls_files(folder) -> dict[str, str]:
    """Of an authority of our own: ca, cert and key."""
    pytest.importorskip("cryptography")
    from distributed.security import Security

    folder.mkdir()
    made = Security.temporary()
    contents = {"ca": made.tls_ca_file, "cert": made.tls_client_cert, "key": made.tls_client_key}
    for name, content in contents.items():
        (folder / f"{name}.pem").write_text(content)
        (folder / f"{name}.pem").chmod(0o600)
    return {name: str(folder / f"{name}.pem") for name in contents}


def test_an_encrypted_cluster_with_one_worker_of_another_version(tmp_path, monkeypatch):
    tls_files = make_tls_files(tmp_path / "tls")
    make_campaign(tmp_path, seeds=2, orders={"all": "until=refused"})
    (tmp_path / "older.py").write_text("import leeward\nleeward.__version__ = '0.0.1'\n")
    options = ("--tls-ca-file", tls_files["ca"], "--tls-cert", tls_files["cert"], "--tls-key", tls_files["key"])
    with DaskCluster(tmp_path / "dask", protocol="tls", options=options) as own:
        assert own.address.startswith("tls://")
        own.add_worker(options=("--preload", str(tmp_path / "older.py")), wait=False)
        own.add_worker(wait=False)
        own.wait()
        refused = leeward("run", "campaign.yaml", *on(own), cwd=tmp_path)
        assert refused.returncode == 2
        assert "--tls-ca, --tls-cert, --tls-key" in refused.stderr
        assert "Traceback" not in refused.stderr
        monkeypatch.setattr(links, "CONNECT_S", 3.0)
        strangers = {f"tls_{name}": file for name, file in make_tls_files(tmp_path / "of others").items()}
        for address, files in ((own.address, strangers), (own.address.replace("tls", "tcp"), {})):
            with pytest.raises(LeewardError, match=f"{address}: no Dask scheduler answers"):
                links.connect(DaskSpec(scheduler=address, **files), lambda *_, **__: None)
        given = [word for name, file in tls_files.items() for word in (f"--tls-{name}", file)]
        process = start("run", "campaign.yaml", *on(own), *given, cwd=tmp_path)
        output = tmp_path / "output.txt"
        reason = f"w0 gets no tasks: it has leeward 0.0.1; install {__version__} there"
        try:
            until(lambda: reason in output.read_text(), "the older one is refused")
            (tmp_path / "refused").touch()
            assert wait_for(process) == 0, output.read_text()
        finally:
            kill_group(process)
        assert "not encrypted" not in output.read_text()
        assert len(digests(tmp_path / "layouts.h5")) == 2
        assert_tidy(tmp_path / "layouts.run")
