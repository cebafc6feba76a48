"""Which thresholds fit these runs, and how sure is that?

A guard that asks about good runs is switched off. So the question is not which thresholds ask
about none of the good runs at hand, but which can be shown to ask about few of those to come:
the upper end of the Clopper-Pearson interval must not be above the share that is allowed.

How overfitting is kept out:

- Few candidates. A step multiplies the asking numbers of one rule by the next of `FACTORS`,
  around the policy it starts from. Nothing else is tuned.
- They form a ladder: from the loosest policy down, each rung tightens one rule by one step, in
  an order that the good runs it is tested on have no say in. Whoever is asked about on a rung is
  asked about on every tighter one.
- The ladder is walked down and left at the first rung whose bound is above the allowed share.
  That is fixed-sequence testing: all rungs above hold together with the whole confidence, so
  many looks cost nothing (Maurer, Hothorn and Lehmacher 1995; "Learn then Test", Angelopoulos
  and others 2021). Bonferroni over the rungs would need twice the runs, a grid of all
  combinations far more.
- With twice the good runs that are needed, one half is walked down first, and a rule whose step
  goes too far there is left as it is, so that one touchy rule doesn't hold up the others. Only
  the other half is tested.
- Equal runs are counted once: a file that is read twice is no new evidence.
- Of the rungs that hold, the one that catches most of the runs labelled as loops is proposed, and
  among those the nearest to the start. Without labelled loops nothing is tightened.

What it cannot know: whether the runs to come are like these, and whether the labels are fair.
Many runs of one task count as many, though they say less than runs of many tasks. Labels given
only to runs that the guard asked about bend the bound; label by the run, not by the verdict.
"""

from langchain_loopguard.replay.calibrate.bound import CONFIDENCE, runs_needed, upper_bound
from langchain_loopguard.replay.calibrate.ladder import FACTORS, CalibrationError, Grid, Rung
from langchain_loopguard.replay.calibrate.measure import (
    Kind,
    Measure,
    MeasureWork,
    kind_of,
    measure,
)
from langchain_loopguard.replay.calibrate.proposal import Calibration, Calibrator, Row

__all__ = [
    "CONFIDENCE",
    "FACTORS",
    "Calibration",
    "CalibrationError",
    "Calibrator",
    "Grid",
    "Kind",
    "Measure",
    "MeasureWork",
    "Row",
    "Rung",
    "kind_of",
    "measure",
    "runs_needed",
    "upper_bound",
]
