"""The dashboard with a login, for `rail app --share`: Streamlit imports ``app``."""

from __future__ import annotations

import argparse
from pathlib import Path

from starlette.middleware import Middleware
from streamlit.starlette import App

from toolkit.dashboard.door import Door
from toolkit.dashboard.settings import MAIN
from toolkit.workspace.login import PasswordFile

_arguments = argparse.ArgumentParser(allow_abbrev=False)
_arguments.add_argument("--password-file", type=Path)
_arguments.add_argument("--name", action="append", default=[])
_given = _arguments.parse_known_args()[0]
_password = PasswordFile(_given.password_file) if _given.password_file else None
app = App(str(MAIN), middleware=[Middleware(Door, password=_password, names=_given.name)])
