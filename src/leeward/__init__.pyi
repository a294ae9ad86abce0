from leeward.campaign import load as load, open_layouts as open_layouts
from leeward.runs.evaluate import evaluate as evaluate
from leeward.runs.run import run as run
from leeward.study.reading import open_study as open_study

__version__: str
