"""How sure is it that few good runs are asked about?"""

from __future__ import annotations

import math

CONFIDENCE = 0.95
"""How sure it is that the proposed policy stays within the allowed share."""


def upper_bound(asked: int, runs: int, confidence: float = CONFIDENCE) -> float:
    """Give the one-sided Clopper-Pearson bound of a share.

    Args:
        asked: How many runs were asked about.
        runs: Of how many.
        confidence: How sure it is that the true share is not above.

    Raises:
        ModuleNotFoundError: If scipy is not installed.
    """
    # The beta distribution's quantile. scipy.stats has it too and takes seconds to import.
    from scipy.special import betaincinv  # noqa: PLC0415 - the extra `calibrate`

    return 1.0 if asked >= runs else float(betaincinv(asked + 1, runs - asked, confidence))


def runs_needed(share: float, asked: int = 0, confidence: float = CONFIDENCE) -> int:
    """Say how many good runs are needed to show that no more than `share` are asked about.

    Args:
        share: The allowed share, above 0 and below 1.
        asked: How many of them are asked about. With none it is `ln(1 - confidence) /
            ln(1 - share)`, rounded up.
        confidence: How sure it is to be.
    """
    if asked == 0:
        return math.ceil(math.log(1 - confidence) / math.log1p(-share))
    low, high = asked, 2 * asked + runs_needed(share, 0, confidence)
    while upper_bound(asked, high, confidence) > share:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        if upper_bound(asked, middle, confidence) > share:
            low = middle
        else:
            high = middle
    return high
