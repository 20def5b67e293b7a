"""A compiling child process: takes jobs from a pipe, one after the other, under limits of the operating system."""

from __future__ import annotations

import copy
import math
import multiprocessing
import multiprocessing.connection
import os
import pickle
import resource
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from multiprocessing.connection import Connection

from maskwright.compiler.memory import address_space


@dataclass(frozen=True)
class Failed:
    """What a job's function raised."""

    error: BaseException


def serve_jobs(pipe: Connection, memory_bytes: int) -> None:
    """Runs in the child until the pipe ends. A job is (function, arguments, seconds); its answer the function's result,
    or `Failed`."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if memory_bytes:
        resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    while True:
        try:
            job = pipe.recv()
        except EOFError:
            return
        except Exception as error:
            answer: object = _failed(error)
        else:
            answer = _answer(*job)
        _send(pipe, answer)


def _answer(function: Callable[..., object], arguments: tuple[object, ...], seconds: float) -> object:
    try:
        with processor_time(seconds):
            return function(*arguments)
    except Exception as error:
        return _failed(error)


def _send(pipe: Connection, answer: object) -> None:
    try:
        pipe.send(answer)
    except OSError:
        raise
    except Exception as error:  # a result that can't be written
        pipe.send(_failed(error))


def _failed(error: Exception) -> Failed:
    """Without its traceback, which may hold anything; as text where it can't be sent, or could be and not be read."""
    error = error.with_traceback(None)
    error.__context__ = error.__cause__ = None
    try:
        copy.deepcopy(error)  # by the same protocol as pickle
        pickle.dumps(error)
    except Exception:
        return Failed(RuntimeError(f"{type(error).__name__}: {error}"))
    return Failed(error)


@contextmanager
def processor_time(seconds: float) -> Iterator[None]:
    """At most so many more seconds of processor time; the kernel ends the process with SIGXCPU."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(used.ru_utime + used.ru_stime + seconds) + 1
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_CPU, (hard, hard))


@contextmanager
def memory_growth(most: int) -> Iterator[None]:
    """At most so many bytes of address space more than now; beyond it allocation fails with MemoryError."""
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    now = address_space()
    wanted = now + most
    if now and (soft == resource.RLIM_INFINITY or wanted < soft):
        resource.setrlimit(resource.RLIMIT_AS, (wanted, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        multiprocessing.connection.wait([parent.sentinel])
        os._exit(1)
