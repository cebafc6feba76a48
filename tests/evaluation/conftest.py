"""Options of these tests."""

from __future__ import annotations


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: takes minutes; leave out with -m 'not slow'")
