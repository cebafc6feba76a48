"""A pseudo-terminal in which the command runs."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import subprocess
import sys
import time


class Terminal:
    """The command in a pseudo-terminal of 80 columns.

    Started as a program of its own: a fork of a process with threads, which a Dask cluster or a
    tracer of another test leaves behind, may hang before it gets to be one.
    """

    def __init__(self, *args: str, **env: str) -> None:
        self.output = ""
        self.fd, inside = pty.openpty()
        # Only a process with a controlling terminal is interrupted by Ctrl-C.
        code = (
            "import fcntl, termios\n"
            "fcntl.ioctl(0, termios.TIOCSCTTY, 0)\n"
            "from langchain_loopguard.cli import main\n"
            "main()"
        )
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *args],
            stdin=inside,
            stdout=inside,
            stderr=inside,
            start_new_session=True,
            env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "80", "LINES": "40", **env},
        )
        os.close(inside)

    def wait_for(self, text: str, seconds: float = 60) -> None:
        end = time.monotonic() + seconds
        while text not in self.output:
            assert time.monotonic() < end, f"{text!r} never came; so far:\n{self.output}"
            if not self._read():
                assert text in self.output, f"ended without {text!r}:\n{self.output}"

    def send(self, text: str) -> None:
        os.write(self.fd, text.encode())

    def __enter__(self):
        return self

    def __exit__(self, *_error: object) -> None:
        os.close(self.fd)
        self.process.kill()
        self.process.wait(60)

    def press(self, key: str, at: str) -> None:
        """Press a key once a pattern is shown."""
        while not re.search(at, self.output):
            assert self._read(), f"{at!r} never came; so far:\n{self.output}"
        self.send(key)

    def leave(self, key: str) -> int:
        """Press a key until the command ends, and give its code.

        Once is not enough: Python misses a Ctrl-C that comes in the moment between the prompt and
        the call that reads the answer, and reads on.
        """
        end = time.monotonic() + 60
        while self.process.poll() is None:
            assert time.monotonic() < end, f"{key!r} ends nothing; so far:\n{self.output}"
            with contextlib.suppress(OSError):  # It has ended and the terminal is closed.
                self.send(key)
            pause = time.monotonic() + 1
            while time.monotonic() < pause and self.process.poll() is None:
                if select.select([self.fd], [], [], 0.1)[0]:
                    self._read()
        return self.process.wait(60)

    def finish(self) -> int:
        while self._read():
            pass
        return self.process.wait(60)

    def _read(self) -> bool:
        if not select.select([self.fd], [], [], 60)[0]:
            return False
        try:
            chunk = os.read(self.fd, 65536)
        except OSError:  # Linux says so when the other side has closed.
            return False
        self.output += chunk.decode(errors="replace")
        return bool(chunk)
