"""The meaning of a request's error, in words without secrets."""

from __future__ import annotations

import asyncio
import errno
import re
from collections.abc import Iterable
from enum import Enum, auto

from tfrfast._native import printable

# Codes of `fail` in the core's table.
UNREADABLE, REPLACED, MEANINGLESS = range(3)


class GivenUpError(Exception):
    """A failed request: the code and the errno for the core, and a finished sentence.

    The sentence quotes servers, so it is made printable.
    """

    def __init__(self, code: int, number: int, text: str) -> None:
        self.code = code
        self.number = number
        self.text = printable(text)
        super().__init__(self.text)

    def for_users(self) -> Exception:
        if self.code == MEANINGLESS:
            return ValueError(self.text)
        return OSError(self.number, self.text)


class Verdict(Enum):
    """The act after a failed attempt."""

    RETRY = auto()
    RENEW = auto()  # read the credentials again, and retry
    MISSING = auto()
    REPLACED = auto()
    HOPELESS = auto()


class BadAnswerError(Exception):
    """An answer without the requested bytes."""


class EndlessListingError(Exception):
    """An abandoned listing, with the reason."""


class OtherVersionError(Exception):
    """An answer with bytes of another version of the object."""


_STATUS = re.compile(r"status code: (\d{3})|HTTP status (?:client|server) error \((\d{3})")
_EXPIRED = re.compile(
    r"ExpiredToken|TokenRefreshRequired|InvalidToken|token (?:has )?expired", re.I
)
#: An address where nothing listens, and only root could listen. Requests that would carry secrets
#: to another host go there.
NOWHERE = "http://127.0.0.1:1"
_NO_RANGES = "Received non-partial response when range requested"
_WAIT = (408, 425, 429)
_WRONG_REGION = re.compile(r"Generic S3 error.*Received redirect without LOCATION")
#: The address of a cloud machine's account service. Other machines give no answer.
_ACCOUNT = re.compile(r"/latest/(?:api/token|meta-data)|/computeMetadata/|/metadata/identity/")


def judge(error: BaseException) -> Verdict:
    """Returns the act after `error`, from obstore or from asyncio."""
    name = type(error).__name__
    text = str(error)
    if isinstance(error, OtherVersionError) or name == "PreconditionError":
        return Verdict.REPLACED
    status = status_of(error)
    if status == 405:
        return Verdict.HOPELESS  # the library reports a missing object
    if isinstance(error, FileNotFoundError) or name == "NotFoundError":
        return Verdict.MISSING
    if name in ("PermissionDeniedError", "UnauthenticatedError") or status in (401, 403):
        return Verdict.RENEW
    if _EXPIRED.search(text) or _has_no_account(error):
        return Verdict.RENEW
    if status == 416:
        return Verdict.REPLACED  # the object is shorter than before
    if status == 412:
        return Verdict.REPLACED
    if (300 <= status < 500 and status not in _WAIT) or _WRONG_REGION.match(text):
        return Verdict.HOPELESS
    if "TooManyRedirects" in text or says_no_size(error) or _NO_RANGES in text:
        return Verdict.HOPELESS
    if isinstance(error, EndlessListingError) or _was_led_away(error):
        return Verdict.HOPELESS
    if isinstance(error, (ValueError, TypeError, NotImplementedError)) or "builder error" in text:
        return Verdict.HOPELESS
    if name in ("NotSupportedError", "InvalidPathError", "UnknownConfigurationKeyError"):
        return Verdict.HOPELESS
    return Verdict.RETRY


def status_of(error: BaseException) -> int:
    """Returns the status of the answer, or 0."""
    match = _STATUS.search(str(error))
    return int(match.group(1) or match.group(2)) if match else 0


def _was_led_away(error: BaseException) -> bool:
    """True if the request went to the address to which stores.py redirects requests for other
    hosts.
    """
    return f" {NOWHERE.partition('//')[2]}," in str(error)


def says_no_size(error: BaseException) -> bool:
    """True if the answer does not state the object's size."""
    return "Content-Length Header missing" in str(error)


def advice(error: BaseException, verdict: Verdict) -> str:
    """Returns advice for a failure that retries have not mended, after a space, or nothing."""
    if verdict is Verdict.RENEW:
        return " Check the credentials and their permissions, or pass storage={...}."
    if verdict is not Verdict.RETRY:
        return ""
    if timed_out(error):
        return " Ask again later, or allow longer pauses with storage={'timeout': ...}."
    if "Connection refused" in _reason(error):
        return " Check the endpoint: nothing answers there."
    return " Ask again later, or allow more with storage={'retries': ...}."


def reason(error: BaseException, secrets: Iterable[str]) -> str:
    """Returns why a request could not be sent, in a few words, or the first line of the error."""
    return _reason(error) or in_words(error, secrets)


def _has_no_account(error: BaseException) -> bool:
    # A machine without an account refuses the request for it, or does not answer.
    return status_of(error) < 500 and _ACCOUNT.search(_summary(error)) is not None


def errno_of(error: BaseException, verdict: Verdict) -> int:
    if verdict is Verdict.MISSING:
        return errno.ENOENT
    if verdict is Verdict.RENEW:
        return errno.EACCES
    if verdict is Verdict.HOPELESS and "status code: 404" in _summary(error):
        return errno.ENOENT  # no such bucket
    return errno.ETIMEDOUT if timed_out(error) else errno.EIO


# A shorter secret would occur in any text.
_SHORTEST_SECRET = 4


def timed_out(error: BaseException) -> bool:
    """True after a long silence."""
    # obstore distinguishes this failure only in its chain of causes.
    return isinstance(error, asyncio.TimeoutError) or "kind: Timeout" in str(error)


def _summary(error: BaseException) -> str:
    return str(error).partition("\n\nDebug source")[0].strip()


_SYSTEM = re.compile(r'(?:message|error): "([^"]+)"')
_CERTIFICATE = re.compile(r"InvalidCertificate\(\s*(?:Other\(\s*OtherError\(\s*)?(\w+)")


def _reason(error: BaseException) -> str:
    """Returns the reason why a request could not be sent, from obstore's chain of causes."""
    source = str(error).partition("source: reqwest::Error")[2]
    if match := _CERTIFICATE.search(source):
        return f"the server's certificate is not valid: {match.group(1)}"
    if "InvalidMessage(" in source:
        return "the server does not speak TLS"
    found = _SYSTEM.findall(source)
    return str(found[-1]) if found else ""


_QUERY = re.compile(r"\?[^\s\"'<>)]*")
_PASSWORD = re.compile(r"://[^\s/@]+@")


def in_words(error: BaseException, secrets: Iterable[str]) -> str:
    """Returns the first line of the error's text, without secrets."""
    if _has_no_account(error):
        return "no credentials were found, and this machine has no account of its own"
    if _WRONG_REGION.match(str(error)):
        return (
            "the bucket is in another region. Set AWS_REGION to the bucket's region, or pass "
            "storage={'region': ...}"
        )
    if timed_out(error):
        return "no answer in time"
    if _was_led_away(error):
        return (
            "the server redirects to another host, which would get the headers or the session "
            "token that were given for this host. Name the other host in the URL or the endpoint"
        )
    if "TooManyRedirects" in str(error):
        return "the server redirects without end"
    if says_no_size(error) or _NO_RANGES in str(error):
        return (
            "the server does not state the size of the object, or answers no ranges, like servers "
            "that compress their answers (Content-Encoding). Turn that off for these objects"
        )
    text = _summary(error)
    code = re.search(r"<Code>([^<]+)</Code>", text)
    message = re.search(r"<Message>([^<]+)</Message>", text)
    said = "".join(f": {each.group(1)}" for each in (code, message) if each)
    # Only the readable part of an answer's body.
    text = re.split(r":? *<(?:\?xml|Error|!DOCTYPE|html)", text, maxsplit=1)[0] + said
    text = text.partition("\n")[0][:500]
    if reason := _reason(error):
        text = f"{text}: {reason}"
    text = _PASSWORD.sub("://***@", _QUERY.sub("?...", text))
    for secret in secrets:
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, "***")
    return text.rstrip(":. ") or type(error).__name__
