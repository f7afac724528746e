"""The environment in which AWS clients can reach the embedded AWS only."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

ACCESS_KEY = "embedded-aws"
SECRET_KEY = "embedded-aws-has-no-secrets"  # noqa: S105  (a fake one)

_REMOVED = (
    "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS",
    "AWS_PROFILE",
    "AWS_DEFAULT_PROFILE",
    "AWS_SESSION_TOKEN",
    "AWS_SECURITY_TOKEN",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_ROLE_ARN",
    "AWS_ROLE_SESSION_NAME",
    "AWS_CREDENTIAL_EXPIRATION",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN",
    "AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE",
    "AWS_CA_BUNDLE",
    "AWS_USE_FIPS_ENDPOINT",
    "AWS_USE_DUALSTACK_ENDPOINT",
)
# S3 Control's clients put the account's id and a dot before the host, and no address has a name
# below it: in front of this it becomes a part of the user's name, which nobody reads.
_NAMED = "embedded@"
_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")


def environment(
    endpoint_url: str, region: str, inherited: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return a complete environment whose AWS clients reach the embedded AWS only.

    It starts from `inherited` (default: the environment of this process) and drops everything that
    could lead an AWS client elsewhere.
    """
    base = dict(os.environ if inherited is None else inherited)
    kept = {key: value for key, value in base.items() if not _leads_elsewhere(key)}
    loopback = f"127.0.0.1,localhost,{_NAMED}127.0.0.1"
    no_proxy = ",".join(filter(None, [kept.get("NO_PROXY") or kept.get("no_proxy"), loopback]))
    return kept | {
        "AWS_ENDPOINT_URL": endpoint_url,
        "AWS_ENDPOINT_URL_S3_CONTROL": endpoint_of("s3control", endpoint_url),
        "AWS_ACCESS_KEY_ID": ACCESS_KEY,
        "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        "AWS_DEFAULT_REGION": region,
        "AWS_REGION": region,
        "AWS_EC2_METADATA_DISABLED": "true",
        "AWS_CONFIG_FILE": os.devnull,
        "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
        "NO_PROXY": no_proxy,
        "no_proxy": no_proxy,
    }


def endpoint_of(service: str, endpoint_url: str) -> str:
    """Return the URL by which a client of a service reaches the embedded AWS.

    >>> endpoint_of("s3control", "http://127.0.0.1:5000")
    'http://embedded@127.0.0.1:5000'
    """
    return endpoint_url.replace("//", f"//{_NAMED}", 1) if service == "s3control" else endpoint_url


def leave_out_user(request: Any, **_: object) -> None:
    """Leave out the user's name in the URL of an AWS request that is about to be signed.

    A handler for botocore's event `before-sign`: other than urllib3, aiohttp takes a name in a URL
    for credentials, and refuses to send those of AWS with it.
    """
    parts = urlsplit(request.url)
    request.url = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()


def refuse_real_aws(environment: Mapping[str, str]) -> None:
    """Raise `LocalError` with every reason why AWS calls made in an environment could be real."""
    problems = [
        *_endpoint_problems(environment),
        *_credential_problems(environment),
        *_proxy_problems(environment),
    ]
    if problems:
        from orchestration.errors import LocalError

        raise LocalError(
            "refusing to run: a call could reach the real AWS\n"
            + "\n".join(f"  - {problem}" for problem in problems)
            + "\nUse EmbeddedAws.environment() as the whole environment of the child process."
        )


def is_loopback(url: str) -> bool:
    """Return whether a URL leads to this machine."""
    host = urlsplit(url).hostname or ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _leads_elsewhere(name: str) -> bool:
    return name in _REMOVED or name.startswith("AWS_ENDPOINT_URL")


def _endpoint_problems(environment: Mapping[str, str]) -> list[str]:
    problems = []
    endpoint = environment.get("AWS_ENDPOINT_URL", "")
    if not endpoint:
        problems.append("AWS_ENDPOINT_URL is not set")
    for name, value in sorted(environment.items()):
        if name.startswith("AWS_ENDPOINT_URL") and value and not is_loopback(value):
            problems.append(f"{name} is {value!r}, which is not on this machine")
    if environment.get("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "").lower() in ("true", "1"):
        problems.append("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS makes clients ignore the endpoint")
    return problems


def _credential_problems(environment: Mapping[str, str]) -> list[str]:
    problems = [
        f"{name} is not the embedded AWS's fake one"
        for name, fake in (("AWS_ACCESS_KEY_ID", ACCESS_KEY), ("AWS_SECRET_ACCESS_KEY", SECRET_KEY))
        if environment.get(name) != fake
    ]
    sources = (
        "AWS_PROFILE",
        "AWS_DEFAULT_PROFILE",
        "AWS_SESSION_TOKEN",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    )
    problems += [f"{name} is set" for name in sources if environment.get(name)]
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        if environment.get(name) != os.devnull:
            problems.append(f"{name} is not {os.devnull}, so a user's own profile is read")
    return problems


def _proxy_problems(environment: Mapping[str, str]) -> list[str]:
    proxies = [name for name in _PROXIES if environment.get(name)]
    exempt = f"{environment.get('NO_PROXY', '')},{environment.get('no_proxy', '')}".split(",")
    host = urlsplit(environment.get("AWS_ENDPOINT_URL", "")).hostname or "127.0.0.1"
    if not proxies or "*" in exempt or host in (name.strip() for name in exempt):
        return []
    return [
        f"{name} would send calls to {host} through a proxy (NO_PROXY lacks it)" for name in proxies
    ]
