"""Used tokens on disk: what a restart finds, and files that are none."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest

from framework.proxy.allowance_file import FILE_NAME, AllowanceFile
from framework.proxy.allowances import Allowances
from framework.values.manifest import AccessKey
from framework.values.rate import Rate

KEY = replace(AccessKey("laptop", "0" * 64), tokens=Rate(100, 86400.0))


def read(directory: Path) -> dict[str, int]:
    allowances = Allowances()
    AllowanceFile(directory, allowances, clock=lambda: 5.0).read()
    return allowances.tokens_left([KEY], 5.0)


async def test_the_end_writes_what_was_used_for_nobody_else_to_read(tmp_path: Path) -> None:
    allowances = Allowances()
    task = asyncio.create_task(AllowanceFile(tmp_path, allowances, clock=lambda: 900.0).run())
    await asyncio.sleep(0)
    allowances.leave(allowances.enter(KEY, 900.0), 70, 900.0)
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task
    assert read(tmp_path) == {"laptop": 30}
    assert (tmp_path / FILE_NAME).stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("content", [b"", b"[]", b"{", b"\xff", b'{"laptop": []}', b"x" * 5_000_000])
def test_a_file_that_is_none_counts_as_empty(tmp_path: Path, content: bytes) -> None:
    (tmp_path / FILE_NAME).write_bytes(content)
    (tmp_path / FILE_NAME).chmod(0o600)
    assert read(tmp_path) == {"laptop": 100}


def test_no_file_is_no_use(tmp_path: Path) -> None:
    assert read(tmp_path) == {"laptop": 100}
