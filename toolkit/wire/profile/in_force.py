"""The profile in force: the built-in names, then those of `/schemas`, then the user's own."""

from __future__ import annotations

from toolkit.errors import WireError
from toolkit.wire.limits import Limits
from toolkit.wire.profile.profile import BUILT_IN, Profile, timed, with_schemas, without_schemas
from toolkit.wire.profile.user_profile import UserProfile


def assumed_profile(users: UserProfile | None, limits: Limits) -> Profile:
    """Return the names assumed before a service was asked: the built-in ones, then the user's.

    >>> from toolkit.wire.limits import LIMITS
    >>> assumed_profile(None, LIMITS).schemas_path
    '/api/v1/data/schemas'
    """
    return (users.applied(BUILT_IN) if users else BUILT_IN).within(limits)


def profile_in_force(users: UserProfile | None, limits: Limits, schemas: bytes | str) -> Profile:
    """Read a `/schemas` body into the profile. The user's own file overrides it.

    ``schemas`` is the body, or as text why there is none: then the file alone counts. Raises
    `WireError` where a history has no usable time then. So it does for a body that is not JSON,
    unless there is such a file: then it is a finding.

    >>> from toolkit.wire.limits import LIMITS
    >>> profile_in_force(None, LIMITS, b'{"source": {"kind": "replay", "id": "x"}}').source
    Source(kind='replay', id='x')
    """
    assumed = assumed_profile(users, limits)
    if isinstance(schemas, str):
        found = without_schemas(assumed, schemas)
        return (users.applied(found) if users else found).within(limits)
    try:
        found = with_schemas(assumed, schemas)
    except WireError as error:
        if users is None:
            raise
        found = without_schemas(assumed, str(error))
    return timed(users.applied(found) if users else found).within(limits)
