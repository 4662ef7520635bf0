"""The password of a shared dashboard and who a provider lets in."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from toolkit.errors import InputError
from toolkit.workspace.login import PasswordFile, ProviderLogin, find_login, read_provider

PASSWORD = "correct horse battery staple"
NEEDED = ("client_id", "client_secret", "server_metadata_url", "redirect_uri", "cookie_secret")
AUTH = dict.fromkeys(NEEDED, "x")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> PasswordFile:
    """The file as it is written, which takes 0.15 s of CPU: for tests that read it alone."""
    made = PasswordFile(tmp_path_factory.mktemp("written") / "folder" / "password")
    made.write(PASSWORD)
    return made


@pytest.fixture
def kept(written: PasswordFile, tmp_path: Path) -> PasswordFile:
    return PasswordFile(Path(shutil.copy2(written.path, tmp_path / "password")))


def secrets(folder: Path, allowed: str | None, **auth: str) -> Path:
    lines = ["[auth]", *(f'{name} = "{value}"' for name, value in auth.items())]
    lines += ["[rail]", f"allowed = {allowed}"] if allowed is not None else []
    path = folder / ".streamlit" / "secrets.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text("\n".join(lines))
    return path


def test_the_file_has_the_hash_alone_for_its_owner_alone(written: PasswordFile) -> None:
    line = written.path.read_text()
    assert line.startswith("$argon2id$v=19$m=65536,t=3,p=4$")
    assert PASSWORD not in line
    assert written.path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in written.path.parent.iterdir()] == ["password"]


def test_a_new_password_takes_the_place_of_the_one_before_however_its_characters_are_typed(
    kept: PasswordFile,
) -> None:
    before = kept.path.read_text()
    kept.write("Z\u00fcrich bahnhof")
    assert kept.path.read_text() != before
    assert [kept.matches(PASSWORD), kept.matches("Zu\u0308rich bahnhof")] == [False, True]


@pytest.mark.parametrize("password", ["", "elevenchars", "x" * 1001])
def test_a_password_that_is_too_short_or_too_long_is_refused_and_not_shown(
    tmp_path: Path, password: str
) -> None:
    with pytest.raises(InputError, match="12 to 1,000 characters") as refused:
        PasswordFile(tmp_path / "password").write(password)
    assert not password or password not in str(refused.value)
    assert not (tmp_path / "password").exists()


@pytest.mark.parametrize("text", ["", "plain", "scrypt$1$2$3$x", "$argon2id$v=19$m=8", "$argon2id"])
def test_a_file_without_a_hash_opens_nothing(kept: PasswordFile, text: str) -> None:
    kept.path.write_text(text)
    for use in (kept.check, lambda: kept.matches(text)):
        with pytest.raises(InputError, match="rail app --set-password"):
            use()


def test_a_file_that_others_can_read_is_refused(kept: PasswordFile) -> None:
    kept.check()
    kept.path.chmod(0o640)
    with pytest.raises(InputError, match="chmod 600"):
        kept.check()


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match="a place that can be written; not a directory"):
        PasswordFile(tmp_path / "file" / "folder" / "password").write(PASSWORD)


def test_a_login_has_to_be_there_and_a_provider_goes_before_the_password(
    workdir: Path, kept: PasswordFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(workdir))
    with pytest.raises(InputError, match="--set-password"):
        find_login()
    PasswordFile.of_user().path.parent.mkdir()
    shutil.copy2(kept.path, PasswordFile.of_user().path)
    assert isinstance(find_login(), PasswordFile)
    secrets(workdir, '["*@a.com"]', **AUTH)
    assert find_login() == ProviderLogin(("*@a.com",))


@pytest.mark.parametrize("name", AUTH)
def test_a_provider_that_lacks_a_value_is_refused(tmp_path: Path, name: str) -> None:
    path = secrets(tmp_path, '["*"]', **(AUTH | {name: ""}))
    with pytest.raises(InputError, match=f"without {name}"):
        read_provider(path)


@pytest.mark.parametrize("allowed", [None, "[]", '"jane@a.com"', '["jane"]', "[1]", '["@"]'])
def test_a_provider_is_refused_that_does_not_say_who_may_enter(
    tmp_path: Path, allowed: str | None
) -> None:
    with pytest.raises(InputError, match="who may enter"):
        read_provider(secrets(tmp_path, allowed, **AUTH))


def test_secrets_without_a_provider_are_none_and_broken_ones_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "secrets.toml"
    assert read_provider(path) is None
    path.write_text("[other]\nx = 1")
    assert read_provider(path) is None
    path.write_text("[auth")
    with pytest.raises(InputError, match="a TOML file"):
        read_provider(path)


@pytest.mark.parametrize(
    ("claims", "lets_in"),
    [
        ({"email": "jane@a.com"}, True),
        ({"email": "JANE@A.com", "email_verified": True}, True),
        ({"email": "jane@a.com", "email_verified": False}, False),
        ({"email": "any@b.com"}, True),
        ({"email": "any@sub.b.com"}, False),
        ({"email": "any@b.com@c.com"}, False),
        ({"email": "joe@a.com"}, False),
        ({"email": None}, False),
        ({}, False),
    ],
)
def test_only_those_on_the_list_may_enter(claims: dict[str, object], lets_in: bool) -> None:
    assert ProviderLogin(("jane@a.com", "*@b.com")).lets_in(claims) is lets_in
    assert ProviderLogin(("*",)).lets_in(claims)
