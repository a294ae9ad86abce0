from leeward.store.directory.audit import (
    Audit as Audit,
    append_line as append_line,
    read_lines as read_lines,
    utc_now as utc_now,
)
from leeward.store.directory.index import (
    Brief as Brief,
    IndexLines as IndexLines,
    encode_line as encode_line,
    event_facts as event_facts,
    output_index as output_index,
    output_index_path as output_index_path,
    whole_lines as whole_lines,
)
from leeward.store.directory.lock import (
    INTERVAL_S as INTERVAL_S,
    INTERVALS as INTERVALS,
    Lock as Lock,
    read_owner as read_owner,
)
from leeward.store.directory.owner import Owner as Owner, process_start as process_start
from leeward.store.directory.quarantine import quarantine as quarantine
from leeward.store.directory.records import (
    BadRecordError as BadRecordError,
    Record as Record,
    begin_attempt as begin_attempt,
    read_record as read_record,
    record_failure as record_failure,
    remove_record as remove_record,
    withdraw_attempt as withdraw_attempt,
)
from leeward.store.directory.results import (
    BadFile as BadFile,
    BadPack as BadPack,
    Doubled as Doubled,
    RunFiles as RunFiles,
    read_results as read_results,
)
from leeward.store.directory.shards import (
    BadShard as BadShard,
    key_of_shard as key_of_shard,
    read_shards as read_shards,
    result_in as result_in,
    store_result as store_result,
)
from leeward.store.directory.sources import (
    demand_outside_runs as demand_outside_runs,
    demand_possible as demand_possible,
    gather as gather,
)
from leeward.store.directory.space import check_space as check_space, prepare_folders as prepare_folders, probe as probe
from leeward.store.directory.temporary import (
    Temporary as Temporary,
    remove_left_overs_of as remove_left_overs_of,
    workspace as workspace,
)
from leeward.store.evaluations import Evaluations as Evaluations, Numbers as Numbers, StudyFacts as StudyFacts
from leeward.store.format.evaluation_result import (
    CASES as CASES,
    Evaluation as Evaluation,
)
from leeward.store.format.found import FoundFile as FoundFile, FoundResult as FoundResult
from leeward.store.format.keys import PATTERN as PATTERN, EvaluationKey as EvaluationKey, Key as Key
from leeward.store.format.kind import Value as Value
from leeward.store.format.kinds import parse_key as parse_key
from leeward.store.format.layout_result import (
    FOREIGN as FOREIGN,
    NO_AEP as NO_AEP,
    OWN as OWN,
    SUCCESS as SUCCESS,
    Maker as Maker,
    Result as Result,
)
from leeward.store.format.verdicts import Verdict as Verdict
from leeward.store.grid import UNITS as UNITS
from leeward.store.isolated.reader import read_files as read_files
from leeward.store.layouts import Layouts as Layouts
from leeward.store.merging.check import CheckReport as CheckReport, check as check
from leeward.store.merging.clean import CleanReport as CleanReport, clean as clean
from leeward.store.merging.contents import file_identity as file_identity
from leeward.store.merging.merge import (
    KnownCampaign as KnownCampaign,
    RunMerge as RunMerge,
    merge as merge,
    merge_run as merge_run,
)
from leeward.store.merging.merge_report import (
    MergeRefusedError as MergeRefusedError,
    MergeReport as MergeReport,
    SourceReport as SourceReport,
)
from leeward.store.merging.packs import finish_packing as finish_packing, pack as pack, unpack as unpack
from leeward.store.merging.selection import Judge as Judge
from leeward.store.merging.writer import OutputHoldsMoreError as OutputHoldsMoreError
from leeward.store.paths import (
    CREDENTIALS as CREDENTIALS,
    LONGEST_CAMPAIGN as LONGEST_CAMPAIGN,
    PACK_SIZE as PACK_SIZE,
    PROBE as PROBE,
    RunPaths as RunPaths,
    entries as entries,
    is_pack as is_pack,
    is_run as is_run,
    is_shard as is_shard,
)
