"""Loading what accounts need before they are forked."""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil
from collections.abc import Iterable

# S3's is used by every job, in its own thread.
_ALWAYS = ("moto.moto_server.werkzeug_app", "moto.s3.models", "werkzeug.serving")


def load(services: Iterable[str]) -> None:
    """Load what every account needs, and moto's part and botocore's model of services."""
    from moto.core.utils import get_service_model

    from orchestration.local import engine
    from orchestration.local.engine.loading import import_engine
    from orchestration.local.server.sessions import boto_session, load_once

    load_once()
    for module in _ALWAYS:
        importlib.import_module(module)
    for service in services:
        if service == "stepfunctions":
            import_engine()
            for found in pkgutil.walk_packages(engine.__path__, f"{engine.__name__}."):
                importlib.import_module(found.name)
        if importlib.util.find_spec(f"moto.{service}"):
            importlib.import_module(f"moto.{service}.urls")
        if service in boto_session().get_available_services():
            keys = {"aws_access_key_id": "-", "aws_secret_access_key": "-"}
            boto_session().client(service, "us-east-1", **keys)
            get_service_model(service)


def seed() -> None:
    """Let this process draw other identifiers than those forked from the same one."""
    from moto.moto_api._internal import mock_random

    mock_random.seed()
