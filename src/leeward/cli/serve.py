"""`leeward serve`: serve the dashboard."""

import socket
from pathlib import Path

from typer import Option

from leeward.cli.options import CAMPAIGN_FILE, PLACE, Options
from leeward.cli.sources import given_place, given_work
from leeward.errors import LeewardError

DEFAULT_PORT = 8750
LOOPBACK = "127.0.0.1"
EVERYWHERE = ("0.0.0.0", "::")


class ServeOptions(Options):
    """Show a campaign or a study in a browser, during and after a run. Ctrl-C stops the server.

    Prints an address with a token. Anyone with this address can view the pages; nobody can change anything. The server
    listens only on this machine (127.0.0.1); from another machine, use the SSH tunnel that the command prints.

    Exit codes: 0 ended by Ctrl-C; 1 the port is in use, or PATH cannot be read; 2 usage error; 4 the storage is
    unavailable.
    """

    path: Path | None = PLACE
    port: int | None = Option(
        None, min=0, max=65535, help=f"Port to listen on. Default: {DEFAULT_PORT}, or any free port if that is in use."
    )
    host: str = Option(LOOPBACK, help="Address to listen on. Any other address lets other machines connect.")
    name: list[str] | None = Option(None, help="Additional host name that browsers may use. Repeatable.")
    campaign: str | None = CAMPAIGN_FILE


def serve(options: ServeOptions) -> None:
    """Serve the dashboard until Ctrl-C."""
    from leeward.web import Access, Dashboard
    from leeward.web.model import Model

    place = given_place(options.path).absolute()  # absolute, so that the commands on the pages work in any folder
    host = options.host
    names = [*(options.name or ()), *([socket.gethostname()] if host in EVERYWHERE else [])]
    model = Model(place, given_work(options.campaign, [place]))
    access = Access.of(host, names)
    try:
        listening = Dashboard(model, host, DEFAULT_PORT if options.port is None else options.port, access)
    except LeewardError:  # another program, or another dashboard, may use the default port
        if options.port is not None:
            raise
        listening = Dashboard(model, host, 0, access)
    with listening as dashboard:
        model.observation()  # raises an error now, before any page is served
        model.warm_up()
        print(f"{place}: open in a browser")
        print(f"  {dashboard.address}")
        if host == LOOPBACK:
            print("From another machine, first run:")
            print(f"  ssh -N -L {dashboard.port}:{LOOPBACK}:{dashboard.port} {socket.gethostname()}")
        else:
            print(f"Note: listening on {host}, unencrypted; anyone who intercepts the address can view the pages.")
        print("Ctrl-C stops the server.", flush=True)
        try:
            dashboard.serve()
        except KeyboardInterrupt:
            print()
