"""Login to a shared dashboard by password (Argon2id, RFC 9106) or OpenID Connect provider."""

from __future__ import annotations

import stat
import unicodedata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from toolkit.errors import InputError, needs_extra
from toolkit.fields import read_toml
from toolkit.files import replace_file
from toolkit.workspace.settings import FOLDERS

LEAST_CHARACTERS = 12
"""A shorter password is refused."""

_MOST_CHARACTERS = 1_000
_NEEDED = ("client_id", "client_secret", "server_metadata_url", "redirect_uri", "cookie_secret")


@dataclass(frozen=True, slots=True)
class PasswordFile:
    """The file with the hash of the dashboard's password.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     kept = PasswordFile(Path(folder) / "password")
    ...     kept.write("correct horse battery")
    ...     kept.matches("correct horse battery"), kept.matches("wrong horse battery")
    (True, False)
    """

    path: Path

    @classmethod
    def of_user(cls) -> PasswordFile:
        """Return this user's file, ``dashboard-password`` in the folder for settings."""
        return cls(FOLDERS.user_config_path / "dashboard-password")

    def write(self, password: str) -> None:
        """Write the hash of a password, which others cannot read.

        Raises `InputError` for a password of fewer than 12 or more than 1,000 characters, and for a
        place that cannot be written.
        """
        if not LEAST_CHARACTERS <= len(password) <= _MOST_CHARACTERS:
            allowed = f"{LEAST_CHARACTERS} to {_MOST_CHARACTERS:,} characters"
            raise InputError("password", "***", allowed)
        hashed = _argon2().PasswordHasher().hash(_typed(password))
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            replace_file(self.path, f"{hashed}\n".encode(), mode=0o600)
        except OSError as error:
            reason = (error.strerror or str(error)).lower()
            raise InputError(
                "password file", str(self.path), "a place that can be written", advice=reason
            ) from None

    def check(self) -> None:
        """Raise `InputError` for a file without a hash, or readable by others."""
        self._read()
        if stat.S_IMODE(self.path.stat().st_mode) & 0o077:
            raise InputError(
                "password file",
                str(self.path),
                "a file that its owner alone can read",
                advice=f"chmod 600 {self.path}",
            )

    def matches(self, password: str) -> bool:
        """Check a password, a wrong one in the same time. Raises `InputError` as `check`."""
        argon2, typed = _argon2(), _typed(password[:_MOST_CHARACTERS])
        try:
            return bool(argon2.PasswordHasher().verify(self._read(), typed))
        except argon2.exceptions.VerificationError:
            return False

    def _read(self) -> str:
        try:
            found = self.path.read_text(encoding="ascii").strip()
            _argon2().extract_parameters(found)
        except (OSError, ValueError):
            raise InputError(
                "password file",
                str(self.path),
                "the hash of a password",
                advice="`rail app --set-password` writes it",
            ) from None
        return found


@dataclass(frozen=True, slots=True)
class ProviderLogin:
    """A login by an OpenID Connect provider, by Streamlit's ``[auth]`` secrets.

    ``allowed`` are email addresses, ``*@example.com`` for a domain, or ``*``.

    >>> login = ProviderLogin(("jane@rail.example", "*@desk.example"))
    >>> login.lets_in({"email": "Joe@Desk.example"}), login.lets_in({"email": "joe@rail.example"})
    (True, False)
    """

    allowed: tuple[str, ...]

    def lets_in(self, claims: Mapping[str, object]) -> bool:
        """Check the claims of a provider. An unverified address does not count."""
        if "*" in self.allowed:
            return True
        email = claims.get("email")
        if not isinstance(email, str) or claims.get("email_verified") is False:
            return False
        name = email.casefold()
        domain = name.rpartition("@")[2]
        return any(one in (name, f"*@{domain}") for one in map(str.casefold, self.allowed))


def find_login() -> ProviderLogin | PasswordFile:
    """Return the login: the provider in Streamlit's secrets, else the password.

    Raises `InputError` without either, and for an incomplete one.
    """
    for path in secrets_files():
        if login := read_provider(path):
            return login
    kept = PasswordFile.of_user()
    if not kept.path.exists():
        raise InputError(
            "--share",
            "no login",
            "a password or an OpenID Connect provider",
            advice="`rail app --set-password` sets one; docs/sharing.md has the provider",
        )
    kept.check()
    return kept


def secrets_files() -> list[Path]:
    """Return Streamlit's secrets files: of the working directory, then of the user."""
    return [place / ".streamlit" / "secrets.toml" for place in (Path.cwd(), Path.home())]


def read_provider(path: Path) -> ProviderLogin | None:
    """Read the provider of a secrets file, or return None.

    Raises `InputError` for a file that is not TOML, an incomplete ``[auth]``, and without ``[rail]
    allowed``.
    """
    if not path.exists():
        return None
    _, document = read_toml(path, "secrets", "a TOML file that can be read")
    auth, rail = document.get("auth"), document.get("rail", {})
    if not isinstance(auth, dict):
        return None
    lacking = [name for name in _NEEDED if not isinstance(auth.get(name), str) or not auth[name]]
    if lacking:
        raise InputError("[auth]", f"without {', '.join(lacking)}", "a value for each, in quotes")
    allowed = rail.get("allowed") if isinstance(rail, dict) else None
    if not isinstance(allowed, list) or not allowed or not all(_is_rule(each) for each in allowed):
        raise InputError(
            "[rail] allowed",
            allowed,
            'a list of who may enter: ["jane@example.com", "*@example.com"], or ["*"] for all',
        )
    return ProviderLogin(tuple(allowed))


def _is_rule(value: object) -> bool:
    return isinstance(value, str) and (value == "*" or "@" in value.strip("@"))


def _argon2() -> ModuleType:
    with needs_extra("dashboard"):
        import argon2  # noqa: PLC0415 - for --share alone
    return argon2


def _typed(password: str) -> bytes:
    return unicodedata.normalize("NFKC", password).encode("utf-8", "surrogatepass")
