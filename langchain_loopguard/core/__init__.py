"""The part that decides: no host, no clock, no I/O, no logging, no globals that change."""
