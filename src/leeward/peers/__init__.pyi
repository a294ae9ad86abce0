from leeward.peers.floris import FlorisCase as FlorisCase, to_floris as to_floris
from leeward.peers.pywake import PyWakeCase as PyWakeCase, to_pywake as to_pywake
