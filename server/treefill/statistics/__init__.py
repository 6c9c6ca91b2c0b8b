"""What becomes of suggestions, in numbers: how many were offered, accepted and kept, and how long they took.

Counting is pure (`observer`, with `acceptance`, `kept`, `latency`, `counts`); `store` keeps the numbers in a file on
this machine, and never a text; `keeper` joins the two for one editor session; `report` says what they come to.
"""

from treefill.statistics.acceptance import Accepted as Acceptance
from treefill.statistics.keeper import Keeper
from treefill.statistics.observer import Shown
from treefill.statistics.report import report_on
from treefill.statistics.store import StatisticsStore, state_file, state_folder

__all__ = ["Acceptance", "Keeper", "Shown", "StatisticsStore", "report_on", "state_file", "state_folder"]
