"""ECR: moto answers, but for the download of layers, which it lacks."""

from __future__ import annotations

from typing import Any

from orchestration.local.account.account import Account
from orchestration.local.account.protocol import (
    ACCOUNT_ID,
    JsonObject,
    Request,
    Service,
    ServiceError,
)


class Ecr(Service):
    """Registries whose layers can be downloaded: the configuration of an image is one of them.

    moto 5.2.5 computes the digest of a layer and forgets its bytes, and has no
    `GetDownloadUrlForLayer`: `test_an_image_of_another_architecture_fails_the_run` would fail.
    """

    name = "ecr"
    malformed = "InvalidParameterException"

    def __init__(self, account: Account) -> None:
        super().__init__(
            {"CompleteLayerUpload": self._completed, "GetDownloadUrlForLayer": self._located}
        )
        self._account = account
        self._layers: dict[str, bytes] = {}

    def handles(self, request: Request) -> bool:
        """Return whether a call ends an upload, or asks for a layer."""
        return request.operation in self.operations

    def layer(self, digest: str) -> bytes | None:
        """Return the bytes of a layer."""
        return self._layers.get(digest)

    def _completed(self, request: JsonObject) -> JsonObject:
        from moto.core.exceptions import JsonRESTError

        backend, repository = self._repository(request)
        upload = repository.uploads.get(request["uploadId"])
        content = b"" if upload is None else bytes(upload.layer_parts)
        try:
            completed: JsonObject = backend.complete_layer_upload(
                request["repositoryName"], request["uploadId"], request["layerDigests"]
            )
        except JsonRESTError as error:
            raise ServiceError(error.error_type, error.message) from error
        self._layers[completed["layerDigest"]] = content
        return completed

    def _located(self, request: JsonObject) -> JsonObject:
        _, repository = self._repository(request)
        digest = request["layerDigest"]
        if digest not in repository.layers or digest not in self._layers:
            text = (
                f"The layer with digest '{digest}' does not exist in the repository with name "
                f"'{request['repositoryName']}' in the registry with id '{ACCOUNT_ID}'"
            )
            raise ServiceError("LayersNotFoundException", text)
        url = f"{self._account.environment['AWS_ENDPOINT_URL']}/_embedded/layers/{digest}"
        return {"downloadUrl": url, "layerDigest": digest}

    def _repository(self, request: JsonObject) -> tuple[Any, Any]:
        from moto.ecr.models import ecr_backends

        backend = ecr_backends[request.get("registryId", ACCOUNT_ID)][self._account.region]
        repository = backend.repositories.get(request["repositoryName"])
        if repository is None:
            text = (
                f"The repository with name '{request['repositoryName']}' does not exist in the "
                f"registry with id '{request.get('registryId', ACCOUNT_ID)}'"
            )
            raise ServiceError("RepositoryNotFoundException", text)
        return backend, repository
