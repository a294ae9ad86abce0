from leeward.watch.activity import audit_events as audit_events
from leeward.watch.comparison import Comparison as Comparison, campaigns_of as campaigns_of, work_from as work_from
from leeward.watch.data import (
    Absence as Absence,
    AbsentTask as AbsentTask,
    FailedTask as FailedTask,
    Holder as Holder,
    HostSeen as HostSeen,
    Progress as Progress,
    WorkerSeen as WorkerSeen,
)
from leeward.watch.kinds import (
    absent_tasks as absent_tasks,
    observe as observe,
    present_at as present_at,
    result_lines as result_lines,
    snapshot as snapshot,
)
from leeward.watch.layouts.campaigns import campaign_of as campaign_of, united as united
from leeward.watch.layouts.cells import (
    Cell as Cell,
    best_cell as best_cell,
    best_of_all as best_of_all,
    best_of_farms as best_of_farms,
)
from leeward.watch.layouts.drawings import (
    FarmShape as FarmShape,
    LayoutView as LayoutView,
    ResourceView as ResourceView,
    Rings as Rings,
    farm_shapes as farm_shapes,
    history_of as history_of,
    layout_view as layout_view,
    neighbours_of as neighbours_of,
    phases_of as phases_of,
    resource_view as resource_view,
)
from leeward.watch.layouts.snapshot import (
    MAKE_ROOM as MAKE_ROOM,
    Observation as Observation,
    Snapshot as Snapshot,
    is_out_of_room as is_out_of_room,
    key_of as key_of,
)
from leeward.watch.layouts.tasks import (
    STATES as STATES,
    TaskFilter as TaskFilter,
    TaskSeen as TaskSeen,
    TaskTable as TaskTable,
    task_filter as task_filter,
    whole_number as whole_number,
)
from leeward.watch.places import (
    demand_place as demand_place,
    kind_of as kind_of,
    paths_of as paths_of,
    run_of as run_of,
)
from leeward.watch.single import ResultSeen as ResultSeen, find_result as find_result, find_results as find_results
from leeward.watch.studies.snapshot import (
    BlockSeen as BlockSeen,
    Figures as Figures,
    StudyObservation as StudyObservation,
    StudySnapshot as StudySnapshot,
    TargetSeen as TargetSeen,
    study_of as study_of,
)
from leeward.watch.studies.views import (
    EvaluationView as EvaluationView,
    FarmSeen as FarmSeen,
    evaluation_view as evaluation_view,
    losses_of as losses_of,
)
