"""State machines become pipelines that do the same; what differs is told."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from orchestration import Pipeline, PipelineError
from orchestration.backends import airflow, stepfunctions
from orchestration.importing import Imported, Note, from_data

ROLE = "arn:aws:iam::111122223333:role/SageMakerExecution"
IMAGE = "683313688378.dkr.ecr.us-east-1.amazonaws.com/sagemaker-xgboost:1.7-1"


def task(resource: str, parameters: Any, **more: Any) -> dict[str, Any]:
    arn = f"arn:aws:states:::{resource}"
    return {"Type": "Task", "Resource": arn, "Parameters": parameters, **more}


TRAINING: dict[str, Any] = {
    "TrainingJobName.$": "$$.Execution.Name",
    "RoleArn": ROLE,
    "AlgorithmSpecification": {"TrainingImage": IMAGE, "TrainingInputMode": "File"},
    "ResourceConfig": {
        "InstanceCount": 1,
        "InstanceType.$": "$.machine",
        "VolumeSizeInGB": 10,
    },
    "StoppingCondition": {"MaxRuntimeInSeconds": 3600},
    "OutputDataConfig": {"S3OutputPath.$": "States.Format('s3://{}/models', $.bucket)"},
    "InputDataConfig": [
        {
            "ChannelName": "train",
            "DataSource": {
                "S3DataSource": {
                    "S3DataType": "S3Prefix",
                    "S3Uri.$": "$.made.Payload.uri",
                    "S3DataDistributionType": "FullyReplicated",
                }
            },
        }
    ],
}
MACHINE: dict[str, Any] = {
    "StartAt": "Make data",
    "States": {
        "Make data": task(
            "lambda:invoke",
            {"FunctionName": "${MakeData}", "Payload": {"bucket.$": "$.bucket"}},
            ResultPath="$.made",
            Retry=[{"ErrorEquals": ["States.ALL"]}],
            Next="Enough",
        ),
        "Enough": {
            "Type": "Choice",
            "Choices": [
                {"Variable": "$.made.Payload.rows", "NumericLessThan": 10, "Next": "Too few"}
            ],
            "Default": "Train",
        },
        "Too few": {"Type": "Fail", "Error": "TooFewRows", "Cause": "too few rows"},
        "Train": task(
            "sagemaker:createTrainingJob.sync",
            TRAINING,
            ResultPath="$.trained",
            Catch=[{"ErrorEquals": ["States.ALL"], "Next": "Complain"}],
            Next="Model",
        ),
        "Complain": {"Type": "Fail", "Error": "NotTrained"},
        "Model": task(
            "sagemaker:createModel",
            {
                "ModelName.$": "$.name",
                "ExecutionRoleArn": ROLE,
                "PrimaryContainer": {
                    "Image": IMAGE,
                    "ModelDataUrl.$": "$.trained.ModelArtifacts.S3ModelArtifacts",
                },
            },
            ResultPath=None,
            Next="Tell",
        ),
        "Tell": {
            "Type": "Parallel",
            "Branches": [
                {
                    "StartAt": "Say",
                    "States": {
                        "Say": task(
                            "sns:publish",
                            {"TopicArn.$": "$.topic", "Message": {"done": True}},
                            End=True,
                        )
                    },
                },
                {
                    "StartAt": "Rest",
                    "States": {"Rest": {"Type": "Wait", "Seconds": 60, "End": True}},
                },
            ],
            "Next": "Queue",
        },
        "Queue": task(
            "aws-sdk:batch:submitJob",
            {"JobName": "after", "JobQueue": "q", "JobDefinition.$": "$[0].MessageId"},
            End=True,
        ),
    },
}


def told(imported: Imported) -> dict[str, str]:
    return {note.path: note.message for note in imported.notes}


@pytest.fixture(scope="module")
def imported() -> Imported:
    return from_data(MACHINE, file="nightly.asl")


def test_states_become_stages_for_both_backends(imported: Imported) -> None:
    workflow = Pipeline.parse(yaml.safe_load(imported.yaml())).lower()
    assert stepfunctions.render(workflow)["States"]
    assert airflow.render(workflow).tasks
    assert imported.description["name"] == "nightly"
    kinds = {name: stage["kind"] for name, stage in imported.description["stages"].items()}
    assert kinds == {
        "make_data": "aws_call",
        "too_few": "fail",
        "train": "training_job",
        "model": "aws_call",
        "say": "aws_call",
        "rest": "pause",
        "queue": "aws_call",
    }


def test_paths_are_references(imported: Imported) -> None:
    stages = imported.description["stages"]
    assert stages["make_data"]["request"] == {
        "FunctionName": {"parameter": "make_data"},
        "Payload": {"bucket": {"parameter": "bucket"}},
    }
    train = stages["train"]
    assert train["channels"]["train"]["uri"] == {"ref": "make_data.uri"}
    assert train["output"]["uri"] == {"join": ["s3://", {"parameter": "bucket"}, "/models"]}
    assert train["cluster"]["instance_type"] == {"parameter": "machine"}
    model = stages["model"]["request"]
    assert model["ModelName"] == {"parameter": "name"}
    assert model["PrimaryContainer"]["ModelDataUrl"] == {"ref": "train.model_artifacts"}
    assert stages["queue"]["request"]["jobDefinition"] == {"ref": "say.message_id"}
    assert stages["say"]["request"]["Message"] == '{"done": true}'


def test_what_ends_the_run_is_followed_by_nothing(imported: Imported) -> None:
    stages = imported.description["stages"]
    assert stages["too_few"] == {
        "kind": "fail",
        "when": {"less": [{"ref": "make_data.rows"}, 10]},
        "error": "TooFewRows",
        "cause": "too few rows",
        "after": ["make_data"],
    }
    enough = {"not": {"less": [{"ref": "make_data.rows"}, 10]}}
    assert stages["train"]["when"] == stages["queue"]["when"] == enough
    assert stages["queue"]["after"] == ["say", "rest"]


def test_all_that_is_otherwise_is_told(imported: Imported) -> None:
    assert told(imported) == {
        "States.Complain": "is left out: only errors lead to it",
        "States.Make data.Retry": (
            "is left out; requests and jobs are tried again as the stage's retry says"
        ),
        "States.Train.TrainingJobName": (
            "each run's job has a name of its own, derived from the run"
        ),
        "States.Train.Catch": "is left out; after a failed run follow the stages of on_failure",
        "parameters": (
            "bucket: functions are sent them as text; declare type: number or boolean where they "
            "are one"
        ),
    }


CALLED: dict[str, Any] = {
    "QueryLanguage": "JSONata",
    "StartAt": "Prepare",
    "States": {
        "Prepare": {
            "Type": "Task",
            "Resource": "arn:aws:states:::glue:startJobRun.sync",
            "Arguments": {
                "JobName": "prepare",
                "Arguments": {"--day": "{% 'day ' & $states.input.day %}"},
            },
            "Assign": {"day": "{% $states.input.day %}"},
            "Next": "Ask",
        },
        "Ask": {
            "Type": "Task",
            "Resource": "arn:aws:states:::aws-sdk:ssm:getParameter",
            "Arguments": {"Name": "/ready"},
            "Next": "Ready",
        },
        "Ready": {
            "Type": "Choice",
            "Choices": [
                {"Condition": "{% $states.input.Parameter.Value = 'yes' %}", "Next": "Kind"}
            ],
            "Default": "Wait",
        },
        "Wait": {"Type": "Wait", "Seconds": 10, "Next": "Ask"},
        "Kind": {
            "Type": "Choice",
            "Choices": [
                {
                    "Condition": "{% $day != 'never' and $states.context.Execution.Input.n >= 3 %}",
                    "Next": "Query",
                },
                {"Condition": "{% $count($states.input) > 3 %}", "Next": "End"},
            ],
            "Default": "End",
        },
        "Query": {
            "Type": "Task",
            "Resource": "arn:aws:states:::athena:startQueryExecution.sync",
            "Arguments": {
                "QueryString": "{% 'SELECT ' & $day %}",
                "ResultConfiguration": {"OutputLocation": "s3://my-bucket/athena"},
            },
            "Next": "End",
        },
        "End": {
            "Type": "Task",
            "Resource": "arn:aws:lambda:us-east-1:111122223333:function:end",
            "End": True,
        },
    },
}


def test_jsonata_that_only_names_and_joins_is_read() -> None:
    stages = from_data(CALLED).description["stages"]
    day = {"join": ["day ", {"parameter": "day"}]}
    assert stages["prepare"]["request"] == {"JobName": "prepare", "Arguments": {"--day": day}}
    assert stages["prepare"]["poll"]["request"] == {"RunId": {"ref": "prepare.run"}}
    assert stages["query"]["when"] == {
        "all": [
            {"not": {"equal": [{"parameter": "day"}, "never"]}},
            {"at_least": [{"parameter": "n"}, 3]},
        ]
    }
    assert stages["query"]["request"]["QueryString"] == {"join": ["SELECT ", {"parameter": "day"}]}
    assert "when" not in stages["end"]


def test_loops_and_what_a_function_is_sent_are_told() -> None:
    imported = from_data(CALLED)
    assert imported.description["parameters"]["n"] == {"type": "number"}
    assert told(imported) == {
        "States.Ask": "Task in a loop, which no stage does; left out",
        "States.End.Arguments": (
            "what it is sent is not known before a run: it is sent nothing; name what else the "
            "function reads"
        ),
        "States.Ready": "Choice in a loop, which no stage does; left out",
        "States.Wait": "Wait in a loop, which no stage does; left out",
    }


def test_a_value_that_depends_on_the_way_is_asked_of_each_run() -> None:
    send = {"QueueUrl": "https://sqs.us-east-1.amazonaws.com/111122223333/q"}
    machine = {
        "StartAt": "Which",
        "States": {
            "Which": {
                "Type": "Choice",
                "Choices": [{"Variable": "$.kind", "StringEquals": "a", "Next": "A"}],
                "Default": "B",
            },
            "A": {"Type": "Pass", "Result": "one", "ResultPath": "$.text", "Next": "Send"},
            "B": {"Type": "Pass", "Result": "two", "ResultPath": "$.text", "Next": "Send"},
            "Send": task("sqs:sendMessage", {**send, "MessageBody.$": "$.text"}, End=True),
        },
    }
    imported = from_data(machine)
    body = imported.description["stages"]["send"]["request"]["MessageBody"]
    assert body == {"parameter": "text_of_the_input_of_send_by_the_way_tak"}
    assert "when" not in imported.description["stages"]["send"]
    assert "nothing stands for" in told(imported)["States.Send.Parameters.MessageBody"]


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ({"A": {"Type": "Pass", "End": True}}, "States: none of them does what a stage does"),
        ({"B": {"Type": "Pass", "End": True}}, "StartAt: names no state"),
        ({"A": task("sns:publish", {"Topic": "x"}, End=True)}, r"States\.A: as stage a: .*Topic"),
    ],
)
def test_what_leaves_no_stage_is_refused(states: dict[str, Any], words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        from_data({"StartAt": "A", "States": states})


def test_a_task_that_nothing_does_is_told() -> None:
    states = {
        "A": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke.waitForTaskToken"},
        "B": {"Type": "Map", "Next": "C"},
        "C": task("sns:publish", {"TopicArn": "arn:aws:sns:us-east-1:1:t", "Message": "m"}),
    }
    chained = {
        "A": {**states["A"], "Parameters": {"FunctionName": "f"}, "Next": "B"},
        "B": states["B"],
        "C": {**states["C"], "End": True},
    }
    imported = from_data({"StartAt": "A", "States": chained})
    assert list(imported.description["stages"]) == ["c"]
    assert told(imported) == {
        "States.A": "nothing stands for States.A; each run must be given the parameter states_a",
        "States.B": "is left out: it has no ItemProcessor",
    }
    text = "is left out: no stage waits for a task token (approval waits for a person)"
    assert Note("States.A", text) in imported.notes


def say(text: Any = "m", **more: Any) -> dict[str, Any]:
    key = "Message.$" if str(text).startswith("$") else "Message"
    topic = "arn:aws:sns:us-east-1:111122223333:t"
    return task("sns:publish", {"TopicArn": topic, key: text}, **({"End": True} | more))


ODD = {"Variable": "$", "IsPresent": True, "Next": "B"}


def mapped(inner: dict[str, Any], **fields: Any) -> Imported:
    """A machine that goes through a list, and says something afterwards."""
    processor = {"StartAt": next(iter(inner)), "States": inner}
    each = {"Type": "Map", "ItemProcessor": processor, "Next": "Done", **fields}
    states = {"Each market": each, "Done": say("done", End=True)}
    return from_data({"StartAt": "Each market", "States": states})


def test_a_map_becomes_a_loop_over_its_list() -> None:
    quote = task(
        "lambda:invoke",
        {"FunctionName": "quote", "Payload": {"of.$": "$.market", "bucket.$": "$.bucket"}},
        ResultPath="$.quote",
        Next="Tell",
    )
    tell = say("States.Format('{}: {}', $.market, $.quote.Payload.price)", End=True)
    tell["Parameters"]["Message.$"] = tell["Parameters"].pop("Message")
    imported = mapped(
        {"Quote": quote, "Tell": tell},
        ItemsPath="$.markets",
        MaxConcurrency=2,
        ItemSelector={"market.$": "$$.Map.Item.Value", "bucket.$": "$.bucket"},
    )
    stages = imported.description["stages"]
    loop = {"items": {"parameter": "markets"}, "max_concurrency": 2, "together": "each_market"}
    assert [stages[name]["for_each"] for name in ("quote", "tell")] == [loop, loop]
    assert stages["quote"]["request"]["Payload"] == {
        "of": {"each": "item"},
        "bucket": {"parameter": "bucket"},
    }
    message = {"join": [{"each": "item"}, ": ", {"ref": "quote.price"}]}
    assert (stages["tell"]["request"]["Message"], stages["done"]["after"]) == (message, ["tell"])
    assert imported.description["parameters"]["markets"] == {"type": "array"}
    assert told(imported)["States.Each market"] == (
        "goes through 100 elements at the most, 2 at a time (for_each)"
    )
    workflow = Pipeline.parse(imported.description).lower()
    assert stepfunctions.render(workflow)
    assert airflow.render(workflow).tasks


def test_a_map_over_objects_names_the_fields_that_it_reads() -> None:
    message = "{% $states.input.market & ' of ' & $states.context.Map.Item.Value.name %}"
    topic = "arn:aws:sns:us-east-1:111122223333:t"
    tell = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sns:publish",
        "Arguments": {"TopicArn": topic, "Message": message},
        "End": True,
    }
    processor = {"StartAt": "Tell", "States": {"Tell": tell}}
    rows = [{"name": "a", "market": "de"}, {"name": "b", "market": "fr"}]
    each = {"Type": "Map", "Items": rows, "ItemProcessor": processor, "End": True}
    machine = {"StartAt": "Each", "States": {"Each": each}, "QueryLanguage": "JSONata"}
    imported = from_data(machine)
    assert imported.description["stages"]["tell"]["for_each"] == {
        "items": rows,
        "max_concurrency": 40,
        "fields": {"market": "string", "name": "string"},
        "key": "name",
    }
    notes = [note.message for note in imported.notes if note.path == "States.Each"]
    assert notes[1] == (
        "elements are taken for objects with the texts market, name, of which name tells them apart"
    )


@pytest.mark.parametrize(
    ("inner", "fields", "why"),
    [
        (
            {"A": say("m", End=True)},
            {"ItemsPath": "$$.Execution.StartTime"},
            "its list is not known before a run",
        ),
        (
            {"A": say("m", End=True)},
            {"ItemReader": {"Resource": "arn:aws:states:::s3:getObject"}},
            "no stage reads the list that its ItemReader does (arn:aws:states:::s3:getObject)",
        ),
        (
            {"A": say("$$.Map.Item.Index", End=True)},
            {"ItemsPath": "$.a"},
            "nothing stands for $$.Map.Item.Index",
        ),
        (
            {"A": say("$.a.b", End=True)},
            {"ItemsPath": "$.a"},
            "no element of a list has a.b here",
        ),
        (
            {"A": say("$.a", ResultPath=None, Next="B"), "B": say("$", End=True)},
            {"ItemsPath": "$.a"},
            "it reads both an element and its fields",
        ),
        (
            {
                "A": {"Type": "Choice", "Choices": [ODD]},
                "B": say("m", End=True),
            },
            {"ItemsPath": "$.a"},
            "no condition says what decides for one element: "
            "States.Each market.ItemProcessor.States.A.Choices[0]",
        ),
        (
            {
                "A": {
                    "Type": "Map",
                    "ItemsPath": "$$.Execution.Input.b",
                    "ItemProcessor": {"StartAt": "B", "States": {"B": say("m", End=True)}},
                    "End": True,
                }
            },
            {"ItemsPath": "$.a"},
            "a Map in it goes through another list",
        ),
        (
            {"A": {"Type": "Pass", "End": True}},
            {"ItemsPath": "$.a"},
            "none of its states does what a stage does",
        ),
    ],
)
def test_a_map_that_no_list_of_stages_is_is_told(
    inner: dict[str, Any], fields: dict[str, Any], why: str
) -> None:
    imported = mapped(inner, **fields)
    assert list(imported.description["stages"]) == ["done"]
    assert told(imported)["States.Each market"] == f"is left out: {why}"


def test_json_as_text_has_references_in_it() -> None:
    given = {"run.$": "$$.Execution.Id", "of": ["a", 1, None], "who.$": "$.who"}
    machine = "arn:aws:states:us-east-1:111122223333:stateMachine:m"
    start = task("states:startExecution", {"StateMachineArn": machine, "Input": given}, End=True)
    imported = from_data({"StartAt": "A", "States": {"A": start}})
    assert imported.description["stages"]["a"]["request"]["input"] == {
        "join": [
            '{"run": "',
            {"run": "id"},
            '", "of": ["a", 1, null], "who": "',
            {"parameter": "who"},
            '"}',
        ]
    }
    assert told(imported) == {
        "States.A.Input": (
            "is JSON as text, in which what a run gives stands as text as it is: no number, and "
            "no quotation mark or line break in it"
        )
    }


def test_a_field_that_a_request_gives_twice_is_told() -> None:
    machine = "arn:aws:states:us-east-1:111122223333:stateMachine:m"
    given = {"StateMachineArn": machine, "Input": {"x": 1}, "input": {"y": 1}}
    states = {"A": task("states:startExecution", given, Next="B"), "B": say(End=True)}
    imported = from_data({"StartAt": "A", "States": states})
    assert list(imported.description["stages"]) == ["b"]
    assert told(imported) == {"States.A": "is left out: Input and input of its request are one"}


def test_a_published_question_that_is_waited_for_is_an_approval() -> None:
    topic = "arn:aws:sns:us-east-1:111122223333:t"
    asked = {"TopicArn": topic, "Subject": "Deploy?", "Message.$": "$$.Task.Token"}
    ask = task("sns:publish.waitForTaskToken", asked, TimeoutSeconds=90_000, Next="B")
    imported = from_data({"StartAt": "A", "States": {"A": ask, "B": say(End=True)}})
    stages = imported.description["stages"]
    assert stages["a"] == {
        "kind": "approval",
        "question": "Deploy?",
        "notify": {"sns_topic": topic},
        "answer_within_h": 25,
    }
    assert stages["b"]["after"] == ["a"]
    assert told(imported) == {
        "States.A.Resource": (
            "is taken for a question to a person, which `orchestrate approve` answers; it has "
            "words of its own, and nobody returns the task token"
        )
    }


def test_two_imports_are_equal(imported: Imported) -> None:
    again = from_data(json.loads(json.dumps(MACHINE)), file="nightly.asl")
    assert (again.yaml(), again.notes) == (imported.yaml(), imported.notes)


def chosen(choices: list[dict[str, Any]], default: str | None, **states: Any) -> dict[str, Any]:
    """Return the stages of a machine that begins with a choice, whose states come in any order."""
    choice = {"Type": "Choice", "Choices": choices, **({"Default": default} if default else {})}
    imported = from_data({"StartAt": "C", "States": {**states, "C": choice}})
    stages: dict[str, Any] = imported.description["stages"]
    return stages


def rule(value: str, following: str, variable: str = "$.x") -> dict[str, Any]:
    return {"Variable": variable, "StringEquals": value, "Next": following}


def test_a_choice_that_may_fail_guards_in_whatever_order_the_states_stand() -> None:
    failing = {"N": say(Next="F", End=False), "F": {"Type": "Fail", "Cause": "no"}}
    for states in ({"T": say(), **failing}, {**failing, "T": say()}):
        stages = chosen([rule("n", "N")], "T", **states)
        assert stages["t"]["when"] == {"not": {"equal": [{"parameter": "x"}, "n"]}}
        assert stages["f"]["when"] == {"equal": [{"parameter": "x"}, "n"]}


def test_a_choice_without_a_default_keeps_its_condition() -> None:
    both = [rule("a", "A"), rule("b", "B")]
    stages = chosen(both, None, A=say(Next="Z", End=False), B=say(Next="Z", End=False), Z=say())
    assert stages["z"]["when"] == {
        "any": [
            {"equal": [{"parameter": "x"}, "a"]},
            {
                "all": [
                    {"not": {"equal": [{"parameter": "x"}, "a"]}},
                    {"equal": [{"parameter": "x"}, "b"]},
                ]
            },
        ]
    }


def test_what_a_skipped_stage_gives_decides_only_the_way_it_stands_on() -> None:
    asks = task("lambda:invoke", {"FunctionName": "f", "Payload": {}}, ResultPath="$.a", Next="C2")
    second = {
        "Type": "Choice",
        "Choices": [{"Variable": "$.a.Payload.ok", "BooleanEquals": True, "Next": "D"}],
        "Default": "S",
    }
    stages = chosen([rule("y", "A")], "D", A=asks, C2=second, D=say(), S=say())
    assert stages["d"]["when"] == {
        "any": [
            {
                "all": [
                    {"equal": [{"parameter": "x"}, "y"]},
                    {"equal": [{"first_of": [{"ref": "a.ok"}, False]}, True]},
                ]
            },
            {"not": {"equal": [{"parameter": "x"}, "y"]}},
        ]
    }


def test_unknown_conditions_are_parameters_of_their_own() -> None:
    present = [{"Variable": f"$.{n}", "IsPresent": True, "Next": n} for n in ("P", "Q")]
    stages = chosen(present, "R", P=say(), Q=say(), R=say())
    first, second = "states_c_choices_0", "states_c_choices_1"
    assert stages["p"]["when"] == {"parameter": first}
    assert stages["q"]["when"] == {"all": [{"not": {"parameter": first}}, {"parameter": second}]}
    assert stages["r"]["when"] == {
        "all": [{"not": {"parameter": first}}, {"not": {"parameter": second}}]
    }


def test_fields_that_nothing_follows_are_told() -> None:
    credentials = {"RoleArn": "arn:aws:iam::111122223333:role/other"}
    machine = {
        "StartAt": "A",
        "TimeoutSeconds": 60,
        "States": {"A": say(Credentials=credentials, TimeoutSecondsPath="$.t")},
    }
    assert told(from_data(machine)) == {
        "TimeoutSeconds": "is left out",
        "States.A.Credentials": "is left out: its request is sent under the pipeline's own role; "
        "see registry_role of the stages of the model registry",
        "States.A.TimeoutSecondsPath": "is left out",
    }


def test_other_fields_of_an_invocation_are_kept() -> None:
    sent = {"FunctionName": "f", "Qualifier": "prod", "Payload": {"a": 1}}
    states = {"A": task("lambda:invoke", sent, End=True)}
    stages = from_data({"StartAt": "A", "States": states}).description["stages"]
    assert stages["a"]["request"] == sent


def test_variables_that_a_rule_or_a_loop_assigns_are_not_taken_for_what_they_were() -> None:
    begin = {"Type": "Pass", "Assign": {"v": "one"}, "Next": "C"}
    rules = [{**rule("n", "T"), "Assign": {"v": "two"}}]
    choice = {"Type": "Choice", "Choices": rules, "Default": "T"}
    machine = {"StartAt": "P", "States": {"P": begin, "C": choice, "T": say("$v")}}
    stages = from_data(machine).description["stages"]
    assert stages["t"]["request"]["Message"] == {"parameter": "v_after_c"}
    again = {"Type": "Pass", "Assign": {"v": "two"}, "Next": "C"}
    choice = {"Type": "Choice", "Choices": [rule("n", "L")], "Default": "T"}
    states = {"T": say("$v"), "P": begin, "C": choice, "L": again}
    stages = from_data({"StartAt": "P", "States": states}).description["stages"]
    assert stages["t"]["request"]["Message"] == {"parameter": "v_after_a_loop"}


def test_texts_that_are_filled_in_at_the_deployment_are_parameters_everywhere() -> None:
    result = {"Type": "Pass", "Result": {"text": "of ${Env}"}, "Next": "C"}
    choice = {"Type": "Choice", "Choices": [rule("${Env}", "T", "$.text")], "Default": "T"}
    states = {"P": result, "C": choice, "T": say("$.text")}
    stages = from_data({"StartAt": "P", "States": states}).description["stages"]
    assert stages["t"]["request"]["Message"] == {"join": ["of ", {"parameter": "env"}]}


@pytest.mark.parametrize(
    ("states", "words"),
    [
        ({"A": say(Next="B", End=False)}, r"States\.A: B is no state"),
        ({"A": {"Type": "Choice", "Choices": None}}, "has another form than AWS describes"),
    ],
)
def test_what_is_no_machine_is_refused(states: dict[str, Any], words: str) -> None:
    with pytest.raises(PipelineError, match=words):
        from_data({"StartAt": next(iter(states)), "States": states})


def test_a_reference_in_the_place_of_a_list_is_sent_as_it_is() -> None:
    request = {**TRAINING, "Tags.$": "$.tags"}
    states = {"A": task("sagemaker:createTrainingJob.sync", request, End=True)}
    imported = from_data({"StartAt": "A", "States": {"B": say(), **states}})
    assert "a" not in imported.description["stages"] or imported.notes


def test_too_many_ways_are_refused_at_once() -> None:
    states: dict[str, Any] = {}
    for n in range(12):
        states[f"C{n}"] = {
            "Type": "Choice",
            "Choices": [rule("a", f"A{n}"), rule("b", "Stop")],
            "Default": f"B{n}",
        }
        states[f"A{n}"] = say(Next=f"C{n + 1}", End=False)
        states[f"B{n}"] = {"Type": "Pass", "Next": f"C{n + 1}"}
    states |= {"C12": say(), "Stop": {"Type": "Succeed"}}
    with pytest.raises(PipelineError, match="more than 64 ways lead here"):
        from_data({"StartAt": "C0", "States": states})


def test_states_of_one_name_are_numbered() -> None:
    def branch(value: str) -> dict[str, Any]:
        choice = {"Type": "Choice", "Choices": [rule(value, "A.B")], "Default": "Stop"}
        states = {"Same": choice, "A.B": say(value), "Stop": {"Type": "Succeed"}}
        return {"StartAt": "Same", "States": states}

    both = {"Type": "Parallel", "Branches": [branch("a"), branch("b")], "Next": "A_B"}
    states = {"P": both, "A_B": say("$[1].MessageId")}
    stages = from_data({"StartAt": "P", "States": states}).description["stages"]
    assert [stages[name].get("when") for name in ("a_b", "a_b_1", "a_b_2")] == [
        {"equal": [{"parameter": "x"}, "a"]},
        {"equal": [{"parameter": "x"}, "b"]},
        None,
    ]
    assert stages["a_b_2"]["after"] == ["a_b", "a_b_1"]


def test_where_no_rule_of_a_choice_holds_the_run_fails_too() -> None:
    stages = chosen([rule("a", "A")], None, A=say())
    assert stages["c_no_rule"] == {
        "kind": "fail",
        "when": {"not": {"equal": [{"parameter": "x"}, "a"]}},
        "error": "NoChoiceMatched",
        "cause": "no rule of C holds",
    }


def asking(**states: Any) -> Imported:
    """Import a machine that waits until something has ended, and goes on with one of the states."""
    asks = task("aws-sdk:ssm:getParameter", {"Name": "/ready"}, ResultPath="$.p", Next="C")
    rules = [rule(name, name, "$.p.Parameter.Value") for name in states if name in ("Good", "Bad")]
    choice = {"Type": "Choice", "Choices": rules, "Default": "W"}
    loop = {"W": {"Type": "Wait", "Seconds": 9, "Next": "Ask"}, "Ask": asks, "C": choice}
    return from_data({"StartAt": "W", "States": {**loop, **states}})


def test_what_a_loop_fails_with_does_not_run_every_time() -> None:
    failing = {"Bad": say(Next="F", End=False), "F": {"Type": "Fail", "Error": "Bad"}}
    imported = asking(Good=say("$.x"), **failing)
    stages = imported.description["stages"]
    assert list(stages) == ["good"]
    assert stages["good"]["request"]["Message"] == {"parameter": "x"}
    text = "is left out: a loop leads to it, and then the execution fails"
    assert told(imported)["States.Bad"] == told(imported)["States.F"] == text


def test_which_end_of_a_loop_is_taken_is_asked_of_each_run() -> None:
    imported = asking(Good=say("$.p.Parameter.Value"), Bad=say())
    stages, end = imported.description["stages"], {"parameter": "states_w_leads_to_good"}
    assert (stages["good"]["when"], stages["bad"]["when"]) == (end, {"not": end})
    assert "nothing stands for States.W leads to Good" in told(imported)["States.W leads to Good"]
    assert "after" not in str(stages["good"]["request"]["Message"])


def test_parameters_have_the_types_of_the_fields_that_they_stand_in() -> None:
    sized = {**TRAINING, "ResourceConfig": {**TRAINING["ResourceConfig"]}}
    del sized["ResourceConfig"]["InstanceCount"]
    sized["ResourceConfig"]["InstanceCount.$"] = "$.cfg.count"
    states = {"A": task("sagemaker:createTrainingJob.sync", sized, End=True)}
    imported = from_data({"StartAt": "A", "States": states})
    assert imported.description["stages"]["a"]["cluster"]["instance_count"] == {
        "parameter": "cfg_count"
    }
    assert imported.description["parameters"]["cfg_count"] == {"type": "number"}
    assert told(imported)["Input.cfg.count"] == "is the parameter cfg_count here"


def test_parameters_that_functions_are_sent_as_text_are_told() -> None:
    sent = {"FunctionName": "f", "Payload": {"n.$": "$.n", "t.$": "States.Format('{}', $.t)"}}
    imported = from_data({"StartAt": "A", "States": {"A": task("lambda:invoke", sent, End=True)}})
    text = "n: functions are sent them as text; declare type: number or boolean where they are one"
    assert told(imported) == {"parameters": text}


@pytest.mark.parametrize("payload", ["text", [1], {"Payload.$": "States.Format('{}', $.x)"}])
def test_what_is_sent_and_is_no_object_is_told(payload: Any) -> None:
    sent = payload if isinstance(payload, dict) else {"Payload": payload}
    states = {"A": task("lambda:invoke", {"FunctionName": "f", **sent}, Next="B"), "B": say()}
    assert "what the function is sent is no object" in str(
        told(from_data({"StartAt": "A", "States": states}))
    )


def test_names_of_cloudformation_are_parameters() -> None:
    function = "arn:${AWS::Partition}:lambda:${AWS::Region}:1:function:${F.Name}"
    sent = {"FunctionName": function, "Payload": {"${Key}": 1, "a": 2}}
    call = task("lambda:invoke", sent, Next="B")
    call["Resource"] = "arn:${AWS::Partition}:states:::lambda:invoke"
    states = {"A": call, "B": {"Type": "Task", "Resource": "${Tell.Arn}", "End": True}}
    imported = from_data({"StartAt": "A", "States": states})
    name = imported.description["stages"]["a"]["request"]["FunctionName"]["join"]
    assert [part["parameter"] for part in name if isinstance(part, dict)] == [
        "aws_partition",
        "aws_region",
        "f_name",
    ]
    notes = told(imported)
    assert "it is sent nothing" in notes["States.A.Parameters"]
    assert notes["States.B.Resource"] == "${Tell.Arn} is taken for the ARN of a Lambda function"


def test_an_endpoint_that_is_not_waited_for_is_told() -> None:
    states = {"A": task("sagemaker:createEndpoint", {"EndpointName": "e"}, End=True)}
    states["A"]["Parameters"]["EndpointConfigName"] = "c"
    imported = from_data({"StartAt": "A", "States": states})
    assert told(imported) == {"States.A.Resource": "the stage waits for its end"}


def test_an_output_that_only_some_ways_have_is_not_followed() -> None:
    topic = "arn:aws:sns:us-east-1:111122223333:t"
    tell = {
        "Type": "Task",
        "Resource": "arn:aws:states:::sns:publish",
        "Arguments": {"TopicArn": topic, "Message": "{% $states.input.k %}"},
        "End": True,
    }
    rules = [{"Condition": "{% $states.input.k = 'a' %}", "Next": "A"}]
    choice = {"Type": "Choice", "Choices": rules, "Default": "A", "Output": {"k": "changed"}}
    machine = {"QueryLanguage": "JSONata", "StartAt": "C", "States": {"C": choice, "A": tell}}
    message = from_data(machine).description["stages"]["a"]["request"]["Message"]
    assert message == {"parameter": "states_input_k_in_a"}


def test_the_output_of_a_branch_that_may_fail_is_that_of_its_other_end() -> None:
    states = {
        "C": {"Type": "Choice", "Choices": [rule("a", "F")], "Default": "A"},
        "A": say(),
        "F": {"Type": "Fail", "Error": "E"},
    }
    both = {"Type": "Parallel", "Branches": [{"StartAt": "C", "States": states}], "Next": "Z"}
    machine = {"StartAt": "P", "States": {"P": both, "Z": say("$[0].MessageId")}}
    stages = from_data(machine).description["stages"]
    assert stages["z"]["request"]["Message"] == {"ref": "a.message_id"}
    assert stages["z"]["after"] == ["a", "f"]


ODD = {"Variable": "$.x", "IsPresent": True}
PLAIN = {"Variable": "$.y", "StringEquals": "a"}


@pytest.mark.parametrize(
    "tested",
    [{"And": [PLAIN, ODD, ODD]}, {"Not": ODD}, {"Or": [{"Not": ODD}, {"And": [PLAIN, ODD]}]}],
)
def test_a_rule_of_which_a_part_is_unknown_is_one_parameter(tested: dict[str, Any]) -> None:
    machine = {
        "StartAt": "C",
        "States": {
            "C": {"Type": "Choice", "Choices": [{**tested, "Next": "P"}], "Default": "R"},
            "P": say(End=True),
            "R": say(End=True),
        },
    }
    imported = from_data(machine)
    stages, asked = imported.description["stages"], {"parameter": "states_c_choices_0"}
    assert [stages[name]["when"] for name in ("p", "r")] == [asked, {"not": asked}]
    notes = [note for note in imported.notes if "nothing stands for" in note.message]
    assert {note.path for note in notes} == {"States.C.Choices[0]"}
    assert imported.description["parameters"]["states_c_choices_0"]["type"] == "boolean"
