"""What do these tests do to the log? Nothing: the faults that they provoke are told there."""

import logging

import pytest


@pytest.fixture(autouse=True)
def quiet():
    logger = logging.getLogger("langchain_loopguard")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    yield
    logger.setLevel(before)
