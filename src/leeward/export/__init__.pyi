from leeward.export.choice import (
    Choice as Choice,
    chosen as chosen,
    damaged as damaged,
    open_results as open_results,
)
from leeward.export.registry import FORMATS as FORMATS
from leeward.export.write import export_layouts as export_layouts
