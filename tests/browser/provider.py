"""An OpenID Connect provider of one person, who is always logged in there."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import urlencode

from joserfc import jwt
from joserfc.jwk import RSAKey
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse
from starlette.routing import Route

from toolkit.serving import ServerSettings, run_in_thread

CLIENT = "rail"


@contextmanager
def provider_of(email: str) -> Iterator[str]:
    """The address of the provider while the block lasts."""
    key = RSAKey.generate_key(2048, parameters={"kid": "one", "use": "sig", "alg": "RS256"})
    nonces: dict[str, str] = {}

    async def metadata(request: Request) -> JSONResponse:
        at = f"http://{request.url.netloc}"
        return JSONResponse(
            {
                "issuer": at,
                "authorization_endpoint": f"{at}/authorize",
                "token_endpoint": f"{at}/token",
                "jwks_uri": f"{at}/keys",
                "id_token_signing_alg_values_supported": ["RS256"],
            }
        )

    async def authorize(request: Request) -> RedirectResponse:
        code = f"code-{len(nonces)}"
        nonces[code] = request.query_params.get("nonce", "")
        back = urlencode({"code": code, "state": request.query_params["state"]})
        return RedirectResponse(f"{request.query_params['redirect_uri']}?{back}")

    async def token(request: Request) -> JSONResponse:
        code = str((await request.form())["code"])
        now = int(time.time())
        claims = {
            "iss": f"http://{request.url.netloc}",
            "aud": CLIENT,
            "sub": "1",
            "iat": now,
            "exp": now + 3600,
            "nonce": nonces[code],
            "email": email,
            "email_verified": True,
        }
        signed = jwt.encode({"alg": "RS256", "kid": "one"}, claims, key)
        return JSONResponse({"access_token": "a", "token_type": "Bearer", "id_token": signed})

    async def keys(_: Request) -> JSONResponse:
        return JSONResponse({"keys": [key.as_dict(private=False)]})

    routes = [
        Route("/.well-known/openid-configuration", metadata),
        Route("/authorize", authorize),
        Route("/token", token, methods=["POST"]),
        Route("/keys", keys),
    ]
    with run_in_thread(ServerSettings(Starlette(routes=routes), grace_s=1), "127.0.0.1", 0) as at:
        yield at
