"""Simulated time in the engine: waits, retries and time-outs.

moto 5.2.5 has no time scale: a Wait of an hour takes an hour. If a part of it no longer takes its
time from here, `test_waits_and_retries_keep_simulated_time` fails.
"""

from __future__ import annotations

import contextvars
import threading
import time
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from moto.stepfunctions.parser.asl.component.common.retry import retrier_decl
from moto.stepfunctions.parser.asl.component.eval_component import EvalComponent
from moto.stepfunctions.parser.asl.component.program.program import Program
from moto.stepfunctions.parser.asl.component.state.exec import execute_state
from moto.stepfunctions.parser.asl.component.state.wait.wait_function.wait_function import (
    WaitFunction,
)
from moto.stepfunctions.parser.asl.eval.callback import callback

from orchestration.local.account.clock import Clock
from orchestration.local.engine.seams import replace

_Scale = Callable[[float], float]
_TASK_LIMIT: contextvars.ContextVar[_Scale] = contextvars.ContextVar("task_limit")


def install(clock: Clock) -> None:
    """Make the engine scale its pauses."""

    def wait_interval(_: Any, env: Any, wait_seconds: float) -> None:
        _wait(env, clock.pause(wait_seconds))

    replace(WaitFunction, "_wait_interval", wait_interval)
    sleep = SimpleNamespace(sleep=lambda seconds: time.sleep(clock.pause(seconds)))
    replace(retrier_decl, "time", sleep)
    _scale_task_timeouts(clock)
    _scale_execution_timeouts(clock)
    _scale_heartbeats(clock)


def _wait(env: Any, seconds: float) -> None:
    end = time.monotonic() + seconds
    while env.is_running() and (left := end - time.monotonic()) > 0:
        env.program_state_event.wait(left)


class _ScaledEvent(threading.Event):
    """The event that the engine waits for until a task ends."""

    def wait(self, timeout: float | None = None) -> bool:
        scale = _TASK_LIMIT.get()
        return super().wait(None if timeout is None else scale(timeout))


def _scale_task_timeouts(clock: Clock) -> None:
    evaluate = execute_state.ExecutionState._evaluate_with_timeout

    def evaluate_with_timeout(self: Any, env: Any) -> None:
        # Waiting for a task token is a pause; everything else is work that runs.
        condition = getattr(getattr(self, "resource", None), "condition", None)
        token = _TASK_LIMIT.set(clock.pause if condition == "waitForTaskToken" else clock.limit)
        try:
            evaluate(self, env)
        finally:
            _TASK_LIMIT.reset(token)

    replace(execute_state.ExecutionState, "_evaluate_with_timeout", evaluate_with_timeout)
    replace(execute_state, "threading", SimpleNamespace(Event=_ScaledEvent))


def _scale_execution_timeouts(clock: Clock) -> None:
    def evaluate(self: Any, env: Any) -> None:
        seconds = self.timeout_seconds.timeout_seconds if self.timeout_seconds else None
        env.next_state_name = self.start_at.start_at_name
        worker = threading.Thread(target=EvalComponent.eval, args=(self, env), daemon=True)
        worker.start()
        worker.join(timeout=None if seconds is None else clock.limit(seconds))
        if worker.is_alive():
            env.set_timed_out()

    replace(Program, "eval", evaluate)


def _scale_heartbeats(clock: Clock) -> None:
    setup: Any = callback.CallbackEndpoint.setup_heartbeat_endpoint

    def setup_heartbeat_endpoint(self: Any, heartbeat_seconds: float) -> Any:
        return setup(self, clock.pause(heartbeat_seconds))

    replace(callback.CallbackEndpoint, "setup_heartbeat_endpoint", setup_heartbeat_endpoint)
