from leeward.campaign import load as load, open_layouts as open_layouts
from leeward.runs.run import run as run

__version__: str
