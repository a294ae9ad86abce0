from leeward.study.reading import open_study as open_study, study_of as study_of
from leeward.study.study import Neighbour as Neighbour, Placed as Placed, Study as Study, load_study as load_study
