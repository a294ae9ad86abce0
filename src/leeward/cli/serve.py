"""`leeward serve`: the dashboard."""

import socket
from pathlib import Path

from typer import Option

from leeward.cli.options import CAMPAIGN_FILE, PLACE, Options
from leeward.cli.sources import given_campaign, given_place
from leeward.errors import LeewardError

USUAL_PORT = 8750
LOOPBACK = "127.0.0.1"
EVERYWHERE = ("0.0.0.0", "::")


class ServeOptions(Options):
    """Show a campaign in a browser, while it runs and afterwards; Ctrl-C ends it.

    Prints an address with a token in it: whoever has it can look, nobody can change anything. It listens on this
    machine only (127.0.0.1); from elsewhere, use the SSH tunnel that it prints.

    Exit codes: 0 ended by Ctrl-C; 1 the port is taken, or PATH cannot be read; 2 wrong use; 4 the storage is
    unavailable.
    """

    path: Path | None = PLACE
    port: int | None = Option(
        None, min=0, max=65535, help=f"Port. Default: {USUAL_PORT}, or any free one if that is taken."
    )
    host: str = Option(LOOPBACK, help="Address to listen on. Any but the default lets other machines reach it.")
    name: list[str] | None = Option(None, help="Another name that browsers may ask for this machine by. Repeatable.")
    campaign: str | None = CAMPAIGN_FILE


def serve(options: ServeOptions) -> None:
    """Serve the dashboard until Ctrl-C."""
    from leeward.web import Access, Dashboard
    from leeward.web.model import Model

    place = given_place(options.path).absolute()  # the commands that its pages give can be pasted into any shell
    host = options.host
    names = [*(options.name or ()), *([socket.gethostname()] if host in EVERYWHERE else [])]
    model = Model(place, given_campaign(options.campaign))
    access = Access.of(host, names)
    try:
        listening = Dashboard(model, host, USUAL_PORT if options.port is None else options.port, access)
    except LeewardError:  # the usual port may be somebody else's, or another one of ours
        if options.port is not None:
            raise
        listening = Dashboard(model, host, 0, access)
    with listening as dashboard:
        model.observation()  # what cannot be read is said before anything is served
        model.warm_up()
        print(f"{place}: open in a browser")
        print(f"  {dashboard.address}")
        if host == LOOPBACK:
            print("From another machine, first: ")
            print(f"  ssh -N -L {dashboard.port}:{LOOPBACK}:{dashboard.port} {socket.gethostname()}")
        else:
            print(f"Note: it listens on {host}, unencrypted; whoever sees the address on its way can look.")
        print("Ctrl-C ends it.", flush=True)
        try:
            dashboard.serve()
        except KeyboardInterrupt:
            print()
