# SPDX-License-Identifier: BSD-2-Clause
"""What the gateway's answers have, as types of the dictionaries that they are. An answer may
have more: a node, for instance, all keys of its configuration."""

from __future__ import annotations

from typing import Any, Dict, List, Optional, TypedDict, Union

#: A configuration for reload() and restart(): a file of the gateway's host, or the object.
Configuration = Union[str, Dict[str, Any]]


class Build(TypedDict):
    name: str
    version: str


class Capabilities(TypedDict):
    build: Build
    hooks: List[str]
    apis: List[str]
    nodes: List[str]
    formats: List[str]


class Status(TypedDict):
    state: str  # "parsed", "running" or "stopped"
    version: str
    hostname: str
    name: str
    uuid: str
    time_now: float  # seconds since 1970
    time_started: float
    timezone: Dict[str, Any]
    clock: Dict[str, Any]
    kernel: Dict[str, str]
    system: Dict[str, Any]


class _SignalName(TypedDict):
    name: Optional[str]
    type: str  # "float", "integer", "boolean" or "complex"


class Signal(_SignalName, total=False):
    unit: str


class ConfigText(TypedDict):
    file: str
    text: str
    given: bool  # with apply() or reload(): the text is not that of the file
    revision: str  # another one behind each reload and each start


class _Problem(TypedDict):
    level: str  # "error" or "warn"
    file: str
    line: int  # 0: of no line
    message: str


class Problem(_Problem, total=False):
    key: str


class Check(TypedDict):
    good: bool
    problems: List[Problem]


class LogLine(TypedDict):
    number: int
    time: float  # seconds since 1970
    level: str
    room: Optional[str]
    message: str


class Log(TypedDict):
    last: int  # for the next call of log()
    lines: List[LogLine]


class HookFigures(TypedDict):
    dropped: int
    failed: int
    starved: int
    held: int
    unwritten: int


class _NodeCounters(TypedDict):
    received: int
    sent: int
    not_sent: int
    not_stored: int
    missed: int
    made_up: int
    lost: int
    reordered: int
    losses: Dict[str, int]
    figures: Dict[str, int]  # of the node-type
    in_hooks: HookFigures
    out_hooks: HookFigures


class NodeCounters(_NodeCounters, total=False):
    step_late: Dict[str, Any]  # of generators


class NodeStats(TypedDict):
    """Besides, for each metric of a hook `stats`, an object by its name."""

    name: str
    uuid: str
    type: str
    state: str  # "started", "stopped", "paused", "pending-connect", "connected", ...
    stats: NodeCounters


class Hook(TypedDict):
    """Besides, the settings that the configuration has for it."""

    type: str
    priority: int


class Direction(TypedDict):
    enabled: bool
    vectorize: int
    signals: List[Signal]
    hooks: List[Hook]


_NodeDirections = TypedDict("_NodeDirections", {"in": Direction, "out": Direction})


class Node(_NodeDirections, NodeStats):
    """Besides, the keys of its configuration."""

    enabled: bool
    affinity: int
    status: str


class Latency(TypedDict):
    """Microseconds; `count` and `below_zero` are samples."""

    count: int
    min_us: float
    mean_us: float
    p50_us: float
    p90_us: float
    p99_us: float
    p999_us: float
    max_us: float
    below_zero: int


class PathCounters(TypedDict):
    samples: int
    dropped: int
    queue_full: int
    unmade: int
    discarded: int
    merged: int
    repeated: int
    starved: int
    hooks: HookFigures
    latency: Latency


class PathStats(TypedDict):
    name: str
    uuid: str
    state: str  # "running", "stopped", "paused", "waiting", "ended" or "disabled"
    stats: PathCounters


_PathEnds = TypedDict("_PathEnds", {"in": List[str], "out": List[str]})


class Path(_PathEnds, PathStats):
    mode: str
    enabled: bool
    reversed: bool
    poll: bool
    direct: bool
    queuelen: int
    rate: float
    original_sequence_no: bool
    signals: List[Signal]
    hooks: List[Hook]


class Stats(TypedDict):
    seconds: float
    nodes: Dict[str, NodeStats]
    paths: List[PathStats]


class _Report(TypedDict):
    kept: List[str]
    stopped: List[str]
    started: List[str]
    failed: List[str]


class Report(_Report, total=False):
    applied: Dict[str, Any]
    refused: Any


class Restart(TypedDict):
    restarts: int
    config: Any


class _JobState(TypedDict):
    id: str
    state: str  # "waiting" or "done"


class JobState(_JobState, total=False):
    status: int
    body: Any
