"""The narrow waist: a handful of step kinds that stages lower to and backends render.

A :class:`Graph` is a set of steps; its edges come from the results that steps read, and from
``after``. Steps that do not depend on each other may run at the same time. Read the kinds
with ``match`` and ``assert_never``, so that a new kind makes the type checker name every renderer
to finish.

What a step can see: the steps of its own graph and of the graphs around it, the steps inside a
``Guarded`` or ``Parallel`` of those (both have run whole before anything after them), and ``Item``
inside a ``ForEach``. What runs inside a ``Choose`` or a ``ForEach`` stays there.
"""

from orchestration.graph.calls import (
    ANY_ERROR,
    JOB_FAILED,
    MAX_REPORT_BYTES,
    NO_CAPACITY,
    TIMED_OUT,
    Adopt,
    Alternative,
    ErrorPattern,
    Failure,
    Fallback,
    Fold,
    Operation,
    Output,
    Pages,
    Path,
    Recovery,
    Retry,
    Until,
)
from orchestration.graph.steps import (
    Call,
    Choose,
    Fail,
    ForEach,
    Graph,
    Guarded,
    Parallel,
    ParameterSpec,
    Read,
    Require,
    ScheduleSpec,
    Step,
    Wait,
    Workflow,
)
from orchestration.graph.walking import (
    all_steps,
    bodies,
    candidates,
    job_name_fields,
    operations,
    ordered,
    reads,
    rewrite,
    stage_of,
    trees,
    upstream,
    visible,
)

__all__ = [
    "ANY_ERROR",
    "JOB_FAILED",
    "MAX_REPORT_BYTES",
    "NO_CAPACITY",
    "TIMED_OUT",
    "Adopt",
    "Alternative",
    "Call",
    "Choose",
    "ErrorPattern",
    "Fail",
    "Failure",
    "Fallback",
    "Fold",
    "ForEach",
    "Graph",
    "Guarded",
    "Operation",
    "Output",
    "Pages",
    "Parallel",
    "ParameterSpec",
    "Path",
    "Read",
    "Recovery",
    "Require",
    "Retry",
    "ScheduleSpec",
    "Step",
    "Until",
    "Wait",
    "Workflow",
    "all_steps",
    "bodies",
    "candidates",
    "job_name_fields",
    "operations",
    "ordered",
    "reads",
    "rewrite",
    "stage_of",
    "trees",
    "upstream",
    "visible",
]
