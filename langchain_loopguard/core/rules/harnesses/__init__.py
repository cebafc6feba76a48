"""Loop rules of other systems, one file each, re-told from descriptions of their behaviour.

They are here to be compared with, and to be used by whoever is used to them; none of their numbers
was measured here. `core.rules.foreign` knows them by name and imports them one by one.
"""
