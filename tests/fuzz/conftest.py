"""Silence the package's log: these tests provoke the faults that it reports."""

import logging

import pytest


@pytest.fixture(autouse=True)
def quiet():
    logger = logging.getLogger("langchain_loopguard")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)
