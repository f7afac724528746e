"""Lines of an estimate, and their sums."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any, Final, Literal

from orchestration.catalog import Rate
from orchestration.planning.search.preference import PRICE_FACTOR

Period = Literal["run", "month"]
HOURS_A_MONTH: Final = 730.0
"""As AWS counts for monthly prices: https://docs.aws.amazon.com/cost-management/latest/userguide/."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """Something that is paid for: a quantity, and the price of its unit."""

    stage: str
    what: str
    """``2 x ml.p5.48xlarge``."""
    rate: Rate | None
    """``None``: no source states a price."""
    expected: float | None
    """The quantity in the rate's unit; ``None``: not known before the run."""
    most: float | None
    """The quantity at most; ``None``: nothing limits it, or it is not known before the run."""
    period: Period = "run"
    saving: float = 0.0
    """The share of the price that spot capacity is expected to save."""
    lacks: str = ""
    """The knowledge that is missing for the figures that are ``None``."""
    notes: tuple[str, ...] = ()
    minor: bool = False
    """True if sums take it at its bound where nothing is expected: it is cents."""
    alternative: bool = False
    """True if it is paid instead of a more expensive line, and not part of any sum."""

    @property
    def expected_usd(self) -> float | None:
        """The dollars that are expected."""
        if self.rate is None or self.expected is None:
            return None
        return self.expected * self.rate.usd * (1 - self.saving)

    @property
    def summed_usd(self) -> float | None:
        """The dollars that sums expect."""
        if self.expected_usd is None and self.minor:
            return self.most_usd
        return self.expected_usd

    @property
    def most_usd(self) -> float | None:
        """The dollars at most: at the high end of a price that is estimated."""
        if self.rate is None or self.most is None:
            return None
        return self.most * self.rate.usd * (PRICE_FACTOR if self.rate.estimate else 1.0)

    def data(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "stage": self.stage,
            "what": self.what,
            "per": self.period,
            "quantity": {"expected": self.expected, "most": self.most},
            "price": None if self.rate is None else {**asdict(self.rate), "read": self.rate.read},
            "expected_usd": self.expected_usd,
            "most_usd": self.most_usd,
            "lacks": self.lacks,
            "notes": list(self.notes),
            "alternative": self.alternative,
        }


@dataclass(frozen=True, slots=True)
class Sum:
    """The dollars of several lines."""

    expected_usd: float | None
    """``None`` where a line's are unknown."""
    most_usd: float | None
    known_most_usd: float
    """The dollars at most of the lines that have a bound."""

    @classmethod
    def of(cls, lines: Iterable[Line]) -> Sum:
        """Add up the lines that are not alternatives."""
        counted = [line for line in lines if not line.alternative]
        most = [line.most_usd for line in counted]
        return cls(
            _total(line.summed_usd for line in counted),
            _total(most),
            sum(usd for usd in most if usd is not None),
        )

    def times(self, count: float) -> Sum:
        """Return it so many times."""
        return Sum(
            None if self.expected_usd is None else self.expected_usd * count,
            None if self.most_usd is None else self.most_usd * count,
            self.known_most_usd * count,
        )

    def __add__(self, other: Sum) -> Sum:
        """Add two sums; what is unknown in one is unknown in both."""
        return Sum(
            _total((self.expected_usd, other.expected_usd)),
            _total((self.most_usd, other.most_usd)),
            self.known_most_usd + other.known_most_usd,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """The cost of a pipeline: of a run, and of a month."""

    pipeline: str
    region: str
    lines: tuple[Line, ...]
    runs_per_month: float | None
    """``None``: nothing says how often it runs."""
    unpriced: tuple[str, ...] = ()
    """Calls that may cost, without a price in the catalog: ``lambda:Invoke``."""
    outside: tuple[str, ...] = ()
    """The costs that are left out of all sums, in words."""
    assumed: Mapping[str, float]

    @property
    def run(self) -> Sum:
        """The cost of one run."""
        return Sum.of(line for line in self.lines if line.period == "run")

    @property
    def standing(self) -> Sum:
        """The cost of a month of what stays after a run."""
        return Sum.of(line for line in self.lines if line.period == "month")

    @property
    def month(self) -> Sum | None:
        """The cost of a month of runs and of what stays; ``None``: nobody says how many runs."""
        if self.runs_per_month is None:
            return None
        return self.run.times(self.runs_per_month) + self.standing

    def lacking(self) -> Iterator[str]:
        """Yield what would have to be known, each with its stage, once."""
        yield from dict.fromkeys(
            f"{line.stage}: {line.lacks}"
            for line in self.lines
            if line.lacks
            and not line.alternative
            and (line.summed_usd is None or line.most_usd is None)
        )

    def data(self) -> dict[str, Any]:
        """Return it as JSON."""
        return {
            "pipeline": self.pipeline,
            "region": self.region,
            "assumed": dict(self.assumed),
            "lines": [line.data() for line in self.lines],
            "run": asdict(self.run),
            "standing_month": asdict(self.standing),
            "runs_per_month": self.runs_per_month,
            "month": None if self.month is None else asdict(self.month),
            "unpriced": list(self.unpriced),
            "outside": list(self.outside),
        }


def merged(lines: Iterable[Line]) -> tuple[Line, ...]:
    """Add up lines that differ in their quantities only."""
    found: dict[Line, Line] = {}
    for line in lines:
        key = replace(line, expected=None, most=None, lacks="")
        known = found.get(key)
        if known is not None:
            line = replace(
                line,
                expected=_total((known.expected, line.expected)),
                most=_total((known.most, line.most)),
                lacks=known.lacks or line.lacks,
            )
        found[key] = line
    return tuple(found.values())


def _total(values: Iterable[float | None]) -> float | None:
    known = list(values)
    return None if None in known else sum(value for value in known if value is not None)
