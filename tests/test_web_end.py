"""How the dashboard ends while somebody looks."""

import http.client
import threading

from leeward.web import Access, Dashboard
from web_cases import HANGS_S


class Vanishing:
    """A model whose work is cut off while a page waits for it."""

    def __init__(self):
        self.asked, self.gone = threading.Event(), threading.Event()

    @property
    def snapshot(self):
        self.asked.set()
        assert self.gone.wait(HANGS_S)
        raise RuntimeError("cannot schedule new futures after shutdown")


def _ask(dashboard: Dashboard) -> int:
    cookie = f"{dashboard.access.cookie_name}={dashboard.access.token}"
    connection = http.client.HTTPConnection("127.0.0.1", dashboard.port, timeout=HANGS_S)
    connection.request("GET", "/workers", headers={"Cookie": cookie})
    return connection.getresponse().status


def _served(dashboard: Dashboard, statuses: list[int]) -> list[threading.Thread]:
    threads = [
        threading.Thread(target=dashboard.serve),
        threading.Thread(target=lambda: statuses.append(_ask(dashboard))),
    ]
    for thread in threads:
        thread.start()
    return threads


def test_what_is_cut_off_by_the_end_is_no_fault(capfd):
    model, statuses = Vanishing(), []
    dashboard = Dashboard(model, "127.0.0.1", 0, Access())
    threads = _served(dashboard, statuses)
    assert model.asked.wait(HANGS_S)
    dashboard.close()
    model.gone.set()
    for thread in threads:
        thread.join(HANGS_S)
    assert statuses == [503]
    assert "Traceback" not in capfd.readouterr().err


def test_the_same_is_a_fault_otherwise(capfd):
    model, statuses = Vanishing(), []
    model.gone.set()
    dashboard = Dashboard(model, "127.0.0.1", 0, Access())
    threads = _served(dashboard, statuses)
    threads[1].join(HANGS_S)
    dashboard.close()
    threads[0].join(HANGS_S)
    assert statuses == [500]
    assert "cannot schedule new futures" in capfd.readouterr().err
