"""Work in processes of its own: in order, on shared-out cores, with errors that keep their parts."""

import os

import pytest

from evenhand.audits.parallel import map_processes
from evenhand.core.errors import InputError
from evenhand.core.protocols import SilentProgress


def squared(number):
    if number < 0:
        raise InputError("a negative number", expected="0 or more", fix="leave it out")
    return number * number, os.getpid(), os.environ.get("OMP_NUM_THREADS")


def work(numbers, jobs):
    return map_processes(squared, numbers, jobs=jobs, progress=SilentProgress(), label="squares")


def test_one_job_stays_here():
    assert [found[:2] for found in work([3, 2], 1)] == [(9, os.getpid()), (4, os.getpid())]
    assert work([], 4) == []


def test_two_jobs_go_elsewhere_and_an_error_comes_back_whole():
    found = work([3, 2, 1], 2)
    assert [value for value, _, _ in found] == [9, 4, 1]
    assert os.getpid() not in {process for _, process, _ in found}
    assert {cores for _, _, cores in found} == {str(max(1, (os.cpu_count() or 1) // 2))}
    with pytest.raises(InputError, match=r"a negative number. Expected: 0 or more. Fix: leave it out."):
        work([1, -1], 2)
