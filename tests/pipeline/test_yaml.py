"""YAML is read safely, as YAML 1.2, with errors that name the line."""

from __future__ import annotations

from pathlib import Path

import pytest

from orchestration import PipelineError
from orchestration.pipeline.yaml import load


def read(folder: Path, text: str) -> object:
    path = folder / "p.yaml"
    path.write_text(text, encoding="utf-8")
    return load(path)["x"]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("true", True),
        ("12:30", "12:30"),
        ("2026-01-01", "2026-01-01"),
        ("012345678901", "012345678901"),
        ("010", "010"),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("10", 10),
        ("-3", -3),
        ("1e-4", 1e-4),
        ("1E3", 1000.0),
        ("1.50", 1.5),
        ("-.5", -0.5),
        ("~", None),
        ("", None),
        ("null", None),
        ("'10'", "10"),
        ("'{{ x }}'", "{{ x }}"),
        ("é\u2028", "é"),
    ],
)
def test_scalars_are_those_of_yaml_1_2(tmp_path: Path, written: str, value: object) -> None:
    found = read(tmp_path, f"x: {written}\n")
    assert (type(found), found) == (type(value), value)


def test_merge_keys_work(tmp_path: Path) -> None:
    text = "base: &b {a: 1, c: 2}\nx: {<<: *b, a: 3}\n"
    assert read(tmp_path, text) == {"a": 3, "c": 2}


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x: 1\ny: 2\nx: 3\n", "line 3, column 1: the key 'x' stands here twice"),
        ("x:\n  a: 1\n  b: {c: 1, c: 2}\n", "line 3, column 13: the key 'c' stands here twice"),
        ("x: !!python/object/apply:os.system [true]\n", "line 1, column 4: could not determine"),
        ("x: !!python/name:os.system\n", "could not determine a constructor"),
        ("x: !mine 3\n", "could not determine a constructor"),
        ("x: [1, 2\n", "line 2, column 1: expected ',' or ']'"),
        ("x: {a: b: c}\n", "line 1"),
        ("\tx: 1\n", "line 1, column 1"),
        ("x: {{ y }}\n", "line 1, column 5: found unhashable key"),
        ("x: *nowhere\n", "found undefined alias"),
        ("- a\n", "holds no mapping"),
        ("", "holds no mapping"),
        ("x: 1\n---\nx: 2\n", "expected a single document"),
        ("x: \x07\n", "is not YAML"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(PipelineError) as error:
        read(tmp_path, text)
    [problem] = error.value.problems
    assert problem.path.endswith("p.yaml")
    assert message in problem.message


def test_aliases_can_not_blow_up_memory(tmp_path: Path) -> None:
    rows = "\n".join(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 9))
    with pytest.raises(PipelineError, match="more than 100000 values"):
        read(tmp_path, f"a0: &a0 [1]\n{rows}\n")


def test_a_value_can_not_hold_itself(tmp_path: Path) -> None:
    with pytest.raises(PipelineError, match="more than 100000 values"):
        read(tmp_path, "x: &a {b: *a}\n")


def test_a_file_that_can_not_be_read_says_why(tmp_path: Path) -> None:
    (tmp_path / "latin.yaml").write_bytes(b"x: \xe9\n")
    for name, message in (
        ("none.yaml", "No such file"),
        (".", "directory"),
        ("latin.yaml", "UTF-8"),
    ):
        with pytest.raises(PipelineError, match=message):
            load(tmp_path / name)
