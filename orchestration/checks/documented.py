r"""Rules of requests that AWS documents in words and that botocore's models do not carry.

They are merged into the models, so that whatever reads a shape knows them. A pattern that is not
AWS's has its meaning in words, as `expected`. Where nothing else is said, the source is botocore
1.43's description of the member or the operation.
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


def _field(value: str, more: str = "", every: str = r"\d+") -> str:
    """Return the pattern of a field of a cron expression: a list of values, spans and steps."""
    part = rf"(?:\*(?:/{every})?|{value}(?:-{value})?(?:/\d+)?{more})"
    return f"{part}(?:,{part})*"


# `cron(*/60 * * * ? *)` is refused: https://github.com/aws/aws-sdk-js/issues/4212. It is the only
# step that is known to be too long; rules with `0/60` are the default of what AWS deploys itself:
# https://github.com/aws-solutions/discovering-hot-topics-using-machine-learning
_MINUTES: Final = _field(_MINUTE, every=_MINUTE)
_HOURS: Final = _field(_HOUR)
_DAYS: Final = _field(_DAY, rf"|L(?:-{_DAY})?|LW|{_DAY}W")
_MONTHS: Final = _field(_MONTH)
_WEEKDAYS: Final = _field(_WEEKDAY, rf"|L|{_WEEKDAY}L|{_WEEKDAY}#[1-5]")
_YEARS: Final = _field(_YEAR)


def _cron(gap: str, more: str = "") -> str:
    """Return the pattern of cron expressions, by that of what stands between two fields."""
    # One of the two days is a question mark.
    days = rf"{_DAYS}{gap}{_MONTHS}{gap}\?|\?{gap}{_MONTHS}{gap}{_WEEKDAYS}"
    return rf"cron\({_MINUTES}{gap}(?:{_HOURS}{gap}(?:{days}){more}){gap}{_YEARS}\)"


_RATE: Final = r"rate\(0*[1-9]\d* (?:minute|hour|day)s?\)"
_ONCE: Final = (
    rf"at\(\d{{4}}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])T{_HOUR}:{_MINUTE}:{_MINUTE}\)"
)
SCHEDULE: Final = f"{_cron(' +')}|{_RATE}|{_ONCE}"
"""The expressions that EventBridge Scheduler takes.

https://docs.aws.amazon.com/scheduler/latest/UserGuide/schedule-types.html, and what LocalStack's
tests of the scheduler recorded on AWS, which takes `rate(1 hours)`. Whether it takes steps that are
longer than their field is not known, but for the one above; they are not refused here.
"""
_GAP: Final = ",? +"
"""A comma too, as AWS found: https://github.com/boto/boto3/issues/2876."""
# AWS deployed a rule of `cron(* ? * * * *)`, which its console calls invalid:
# https://github.com/aws-solutions/aws-waf-security-automations/issues/261
_ANY_HOUR: Final = rf"|\?{_GAP}{_DAYS}{_GAP}{_MONTHS}{_GAP}{_WEEKDAYS}"
RULE_SCHEDULE: Final = (
    rf"(?:{_cron(_GAP, _ANY_HOUR)}"
    r"|rate\((?:1 (?:minute|hour|day)|(?!0*1 )0*[1-9]\d* (?:minutes|hours|days))\))?"
)
"""The expressions that rules take; a rule of events may have an empty one.

https://docs.aws.amazon.com/eventbridge/latest/userguide/eb-scheduled-rule-pattern.html. They ask
for one minute and for more minutes: https://github.com/aws/aws-cdk/issues/32753.
"""
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
        "members": {
            "DetailType": {"max": 128},
            "Source": {
                "pattern": r"(?!aws\.)[\s\S]*",
                "expected": "a source of your own, which does not begin with aws.",
            },
        },
    },
    "ScheduleExpression": {
        "pattern": RULE_SCHEDULE,
        "expected": "rate(6 hours), or cron(…) with six fields of which one of the two days is ?: "
        "cron(0 6 ? * MON *)",
    },
}

# https://docs.aws.amazon.com/AmazonS3/latest/userguide/bucketnamingrules.html (November 2026).
# Buckets of before March 2018 may have others; they are there, and nobody makes them. Directory
# buckets have a suffix of their own.
BUCKET: Final = (
    r"(?!xn--|sthree-|amzn-s3-demo-|\d+\.\d+\.\d+\.\d+$)(?!.*\.\.)(?!.*(?:-s3alias|--ol-s3|\.mrap"
    r"|--table-s3)$)[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]"
)
DIRECTORY: Final = "--x-s3"
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
