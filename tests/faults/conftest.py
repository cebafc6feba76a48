"""One PostgreSQL server for the tests of this folder."""

from __future__ import annotations

import pytest

from tests.faults.stores import available, postgres


@pytest.fixture(scope="session")
def postgres_uri(tmp_path_factory):
    """The URI of a server that is started when the first test needs it."""
    if "postgres" not in available():
        pytest.skip("pgserver is not installed")
    with postgres(tmp_path_factory.mktemp("postgres") / "data") as uri:
        yield uri
