from leeward.export.choice import (
    Choice as Choice,
    chosen as chosen,
    damaged as damaged,
    open_results as open_results,
)
from leeward.export.write import FORMATS as FORMATS, export_layouts as export_layouts
