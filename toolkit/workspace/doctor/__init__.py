"""`rail doctor`: an examination of a service before anything is loaded from it."""

from toolkit.workspace.doctor.examination import examine
from toolkit.workspace.doctor.findings import Check, Examination, State

__all__ = ["Check", "Examination", "State", "examine"]
