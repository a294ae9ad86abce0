from leeward.export.choice import (
    Choice as Choice,
    chosen as chosen,
    chosen_evaluations as chosen_evaluations,
    damaged as damaged,
    open_evaluations as open_evaluations,
    open_results as open_results,
)
from leeward.export.study import (
    STUDY_FORMATS as STUDY_FORMATS,
    export_features as export_features,
    export_study as export_study,
)
from leeward.export.write import FORMATS as FORMATS, export_layouts as export_layouts
