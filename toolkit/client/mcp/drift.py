"""Findings where a document differs from the schema that its service declares for it."""

from __future__ import annotations

from collections import Counter
from typing import Any

from jsonschema.exceptions import SchemaError  # type: ignore[import-untyped]  # it ships no types
from jsonschema.validators import validator_for  # type: ignore[import-untyped]  # as above
from referencing import Registry
from referencing.exceptions import Unresolvable

from toolkit.wire.profile import Finding


def drift(tool: str, schema: dict[str, Any] | None, document: object) -> list[Finding]:
    """Return a finding per kind of difference and place, and for a schema of no use.

    References are followed inside the schema alone, never to an address.

    >>> schema = {"properties": {"items": {"items": {"required": ["ts"]}}}}
    >>> drift("prices", schema, {"items": [{"ts": 1}, {}, {}]})[0].says
    "'ts' is a required property (2 times)"
    """
    if schema is None:
        return [Finding("schema_missing", tool, "the service declares none for its results")]
    kind = validator_for(schema)
    found: Counter[tuple[str, str]] = Counter()
    try:
        kind.check_schema(schema)
        for error in kind(schema, registry=Registry()).iter_errors(document):
            place = "".join("[]" if isinstance(step, int) else f".{step}" for step in error.path)
            rule = f"is not {error.validator} {error.validator_value!r:.80}"
            says = error.message if error.validator == "required" else rule
            found[place, says] += 1
    except (SchemaError, Unresolvable) as error:
        return [Finding("schema_unusable", tool, " ".join(str(error).split())[:200])]
    return [
        Finding("result_differs", tool + place, f"{says} ({n} times)" if n > 1 else says)
        for (place, says), n in found.items()
    ]
