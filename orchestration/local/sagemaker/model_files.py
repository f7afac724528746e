"""The files of a model, as they lie in its container."""

from __future__ import annotations

from pathlib import Path

from orchestration.local.account import storage
from orchestration.local.account.protocol import JsonObject, ServiceError
from orchestration.local.account.storage import Caller, Location
from orchestration.local.sagemaker import archive
from orchestration.local.sagemaker.checks.hosting import model_data


class CodeMissing(Exception):
    """The code that a container's variables name cannot be fetched."""


def fetch(container: JsonObject, model_dir: Path, reader: Caller) -> None:
    """Fetch the model of a container, and the code that its variables name."""
    location = model_data(container, reader)
    if location is None:
        return
    source = container.get("ModelDataSource", {}).get("S3DataSource", {})
    if source.get("S3DataType") == "S3Prefix" and source.get("CompressionType") == "None":
        storage.download(location, model_dir)
    else:
        archive.unpack(storage.read(location), model_dir)
    code = container.get("Environment", {}).get("SAGEMAKER_SUBMIT_DIRECTORY", "")
    code = code.strip('"')
    if code.startswith("s3://"):
        try:
            archive.unpack(storage.read(Location.parse(code, reader)), model_dir / "code")
        except ServiceError as error:
            raise CodeMissing(f"cannot fetch {code}: {error}") from error


def fetch_beside(container: JsonObject, folder: Path, reader: Caller) -> None:
    """Fetch the data beside the model, each in a folder of its channel."""
    for each in container.get("AdditionalModelDataSources", []):
        source, place = each["S3DataSource"], folder / each["ChannelName"]
        place.mkdir(parents=True)
        location = Location.parse(source["S3Uri"], reader)
        if source["S3DataType"] == "S3Prefix" and source["CompressionType"] == "None":
            storage.download(location, place)
        else:
            archive.unpack(storage.read(location), place)
