"""How do the properties run?"""

from hypothesis import settings

# A busy machine is no fault of the code; pytest's own time limit stops what hangs.
settings.register_profile("core", deadline=None)
settings.load_profile("core")
