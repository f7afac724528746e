r"""Rules of requests that AWS documents in words and that botocore's models do not carry.

They are merged into the models, so that whatever reads a shape knows them. `expected` says in words
what a pattern means. Where nothing else is said, the source is botocore 1.43's description of the
member or the operation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

NAME: Final = (
    r"[^\s<>{}\[\]?*\"#%\\^|~`$&,;:/\x00-\x1F\x7F-\x9F\x{D800}-\x{DFFF}\x{FFFE}\x{FFFF}\x{10FFFF}]+"
)
"""The names that Step Functions gives: of state machines, of activities, of executions."""

_MINUTE: Final = r"[0-5]?\d"
_HOUR: Final = r"(?:[01]?\d|2[0-3])"
_DAY: Final = r"(?:0?[1-9]|[12]\d|3[01])"
_MONTH: Final = r"(?:0?[1-9]|1[0-2]|(?i:JAN|FEB|MAR|APR|MAY|JUN|JUL|AUG|SEP|OCT|NOV|DEC))"
_WEEKDAY: Final = r"(?:[1-7]|(?i:SUN|MON|TUE|WED|THU|FRI|SAT))"
_YEAR: Final = r"(?:19[7-9]\d|20\d\d|21\d\d)"


def _field(value: str, more: str = "") -> str:
    """Return the pattern of a field of a cron expression: a list of values, spans and steps."""
    part = rf"(?:(?:\*|{value}(?:-{value})?)(?:/{value})?{more})"
    return f"{part}(?:,{part})*"


_DAYS: Final = _field(_DAY, rf"|L(?:-{_DAY})?|LW|{_DAY}W")
_WEEKDAYS: Final = _field(_WEEKDAY, rf"|L|{_WEEKDAY}L|{_WEEKDAY}#[1-5]")
# The year is no value of its own steps.
_YEARS: Final = rf"(?:\*|{_YEAR}(?:-{_YEAR})?)(?:/\d+)?(?:,{_YEAR}(?:-{_YEAR})?)*"
# One of the two days is a question mark.
_CRON: Final = (
    rf"cron\({_field(_MINUTE)} +{_field(_HOUR)} +"
    rf"(?:{_DAYS} +{_field(_MONTH)} +\?|\? +{_field(_MONTH)} +{_WEEKDAYS}) +{_YEARS}\)"
)
_RATE: Final = r"rate\(0*[1-9]\d* (?:minute|hour|day)s?\)"
_ONCE: Final = (
    rf"at\(\d{{4}}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T{_HOUR}:{_MINUTE}:{_MINUTE}\)"
)
SCHEDULE: Final = f"{_CRON}|{_RATE}|{_ONCE}"
"""https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html; as strict as what
LocalStack's tests of the scheduler recorded on AWS, and no stricter: `rate(1 hours)` is taken."""
# https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-scheduled-rule-pattern.html
RULE_SCHEDULE: Final = (
    rf"{_CRON}|rate\((?:1 (?:minute|hour|day)|(?!0*1 )0*[1-9]\d* (?:minutes|hours|days))\)"
)
"""One minute, more minutes: rules ask for that, as https://github.com/aws/aws-cdk/issues/32753."""
_SCHEDULER: Final = {
    "ScheduleExpression": {
        "pattern": SCHEDULE,
        "expected": "at(2027-01-31T06:00:00), rate(6 hours), or cron(…) with six fields of which "
        "one of the two days is ?: cron(0 6 ? * MON *)",
    }
}

# What is required, and the length: also
# https://docs.aws.amazon.com/eventbridge/latest/APIReference/API_PutEventsRequestEntry.html.
# The source: https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-events-structure.html
# (both November 2026). An entry without them fails in an answer of status 200.
_EVENTS: Final[Mapping[str, Mapping[str, Any]]] = {
    "PutEventsRequestEntry": {
        "required": ["Detail", "DetailType", "Source"],
        "members": {"DetailType": {"max": 128}, "Source": {"pattern": r"(?!aws\.)[\s\S]*"}},
    },
    "ScheduleExpression": {
        "pattern": RULE_SCHEDULE,
        "expected": "rate(6 hours), or cron(…) with six fields of which one of the two days is ?: "
        "cron(0 6 ? * MON *)",
    },
}

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html (November 2026).
# Buckets of before March 2018 may have others; they are there, and nobody makes them.
BUCKET: Final = (
    r"(?!xn--|sthree-|amzn-s3-demo-|\d+\.\d+\.\d+\.\d+$)(?!.*\.\.)(?!.*(?:-s3alias|--ol-s3|\.mrap"
    r"|--x-s3|--table-s3)$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
)
_S3: Final = {
    "CreateBucketRequest": {
        "members": {
            "Bucket": {
                "pattern": BUCKET,
                "expected": "a bucket's name: 3 to 63 small letters, digits, dots and hyphens, "
                "with a letter or a digit at both ends, and none of AWS's own prefixes and "
                "suffixes",
            }
        }
    }
}

# Bytes, really, and by default; the attribute MaximumMessageSize of a topic allows 1 MiB.
LONGEST_MESSAGE: Final = 262_144
SUBJECT: Final = r"[^\x00-\x1F\x7F-\x9F\x{2028}\x{2029}]{1,100}"
"""A hundred characters are taken, although the description says less than a hundred."""
_SNS: Final = {
    "PublishInput": {
        "members": {
            # Recorded by LocalStack's tests of SNS: "Invalid parameter: Empty message".
            "Message": {"min": 1},
            "Subject": {
                "pattern": SUBJECT,
                "expected": "1 to 100 characters without line breaks and control characters",
            },
        }
    }
}

LONGEST_PARAMETERS: Final = {"Standard": 4096, "Advanced": 8192}
"""The characters of values in the Parameter Store, by tier."""
PARAMETER: Final = r" *[\w./-]+ *"
_SSM: Final = {
    "PutParameterRequest": {
        "members": {
            "Name": {
                "pattern": PARAMETER,
                "expected": "a name of letters, digits and _.-/",
            },
            "Value": {"max": LONGEST_PARAMETERS["Advanced"]},
        }
    }
}

SHAPES: Final[Mapping[str, Mapping[str, Mapping[str, Any]]]] = {
    "events": _EVENTS,
    "s3": _S3,
    "scheduler": _SCHEDULER,
    "sns": _SNS,
    "ssm": _SSM,
    "stepfunctions": {
        "Name": {
            "pattern": NAME,
            "expected": "a name without spaces, brackets, control characters and "
            'any of ?*"#%\\^|~`$&,;:/',
        }
    },
}
"""By service and shape: the traits that its model lacks."""
