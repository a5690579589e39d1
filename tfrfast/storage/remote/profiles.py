"""Amazon's profiles: the region, the endpoint and the credentials of Amazon's own tools."""

from __future__ import annotations

import configparser
import importlib
import os
from typing import Any

# If one of these is set, the library reads the environment itself.
_ELSEWHERE = (
    "AWS_ACCESS_KEY_ID",
    "AWS_WEB_IDENTITY_TOKEN_FILE",
    "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
    "AWS_CONTAINER_CREDENTIALS_FULL_URI",
)
_COPIED = {
    "aws_access_key_id": "access_key_id",
    "aws_secret_access_key": "secret_access_key",
    "aws_session_token": "session_token",
}
_BY_BOTO3 = ("sso_session", "sso_start_url", "role_arn", "credential_process", "login_session")


def profile_options(scheme: str, public: dict[str, Any], secrets: dict[str, Any]) -> dict[str, Any]:
    """Returns the options that only the chosen profile sets. Removes `profile` from `public`."""
    named = public.pop("profile", None)
    if scheme != "s3":
        return {}
    name = named or os.environ.get("AWS_PROFILE") or os.environ.get("AWS_DEFAULT_PROFILE")
    section = _read_profile(name or "default")
    if section is None:
        if name:
            raise ValueError(
                f"There is no profile {name!r} in {_file('config')} or {_file('credentials')}."
            )
        return {}
    found: dict[str, Any] = {}
    if "region" in section and not _is_set("AWS_REGION", "AWS_DEFAULT_REGION"):
        found["region"] = section["region"]
    if "endpoint_url" in section and not _is_set("AWS_ENDPOINT_URL", "AWS_ENDPOINT_URL_S3"):
        found["endpoint"] = section["endpoint_url"]
    has_credentials = "access_key_id" in secrets or public.get("anonymous", False)
    if has_credentials or (named is None and _is_set(*_ELSEWHERE)):
        return found
    if "aws_access_key_id" in section:
        found.update(
            (ours, section[theirs]) for theirs, ours in _COPIED.items() if theirs in section
        )
    elif any(each in section for each in _BY_BOTO3):
        found["credential_provider"] = _boto3_provider(name or "default")
    return found


def _is_set(*names: str) -> bool:
    return any(os.environ.get(name) for name in names)


def _file(kind: str) -> str:
    variable = {"config": "AWS_CONFIG_FILE", "credentials": "AWS_SHARED_CREDENTIALS_FILE"}[kind]
    return os.path.expanduser(os.environ.get(variable) or f"~/.aws/{kind}")


def _read_profile(name: str) -> dict[str, str] | None:
    """Returns the options of a profile. The credentials file takes precedence."""
    found: dict[str, str] | None = None
    for kind, title in (("config", f"profile {name}"), ("credentials", name)):
        parser = configparser.RawConfigParser(strict=False)
        try:
            parser.read(_file(kind), encoding="utf-8")
        except (configparser.Error, UnicodeDecodeError) as error:
            # The error's message may quote the line, and so a secret.
            raise ValueError(
                f"{_file(kind)!r} cannot be read as a file of profiles ({type(error).__name__})."
            ) from None
        for each in (title, name) if name == "default" else (title,):
            if parser.has_section(each):
                found = {**(found or {}), **dict(parser.items(each))}
                break
    return found


def _boto3_provider(name: str) -> Any:
    try:
        boto3 = importlib.import_module("boto3")
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            f"The profile {name!r} gets its credentials from a role, a login or a program, which "
            "boto3 asks for: pip install boto3",
            name=error.name,
        ) from None
    return Boto3CredentialProvider(boto3.Session(profile_name=name))
