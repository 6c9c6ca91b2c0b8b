"""Times as a histogram over logarithmic buckets, so that days and sessions add up and percentiles need no list.

Bucket b holds times around 2 ** (b / 8) ms, half a bucket to either side: what is read from one is at most 5 % off.
1 ms is bucket 0, 100 ms bucket 53, which is read as 98.7 ms.
"""

import math
from collections.abc import Mapping

BUCKETS_PER_OCTAVE = 8
MAX_RELATIVE_ERROR = 0.05
"""Half a bucket, and three digits."""
_SHORTEST_MS, _LONGEST_MS = 0.01, 3_600_000.0


def bucket_of(ms: float) -> int:
    """The bucket that a time falls into."""
    return round(BUCKETS_PER_OCTAVE * math.log2(min(max(ms, _SHORTEST_MS), _LONGEST_MS)))


def ms_of(bucket: int) -> float:
    """The middle of a bucket, to three digits."""
    return float(f"{2 ** (bucket / BUCKETS_PER_OCTAVE):.3g}")


def percentile(histogram: Mapping[int, int], share: float) -> float | None:
    """The time in ms that this share of all is not above; None where there is none."""
    n_below, n_wanted = 0, share * sum(histogram.values())
    for bucket in sorted(histogram):
        n_below += histogram[bucket]
        if n_below >= n_wanted:
            return ms_of(bucket)
    return None
