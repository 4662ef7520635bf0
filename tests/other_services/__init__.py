"""Services of other kinds: each serves given rows as the interface document allows, in its own way.

They are written from the interface document alone, and share no idea of the wire with the client.
Each kind is a module, whose docstring lists what it does differently, what it keeps of the document
and what it departs from. Beside it is a TOML: the profile by which the tests load it.

| kind | differs in |
|---|---|
| `nested` | nested records, decimal text, ISO times, one composed key, no /schemas |
| `rows` | rows by position, times in ms, a cursor in headers, /schemas with an unknown unit |
| `opposite` | spread and differential of the opposite sign, without the legs' prices and rates |
| `opposite-unsaid` | the same, and no word of the sign in /schemas |
| `inforce` | funding as rates in force, in percent per hour, one row per hour; numbers as text |
| `oldest` | oldest first and paged forward in time, also the logs; ISO times, other words |
| `numbered`, `resources`, `tabled` | page numbers, JSON:API and tables, in `further` alone |

A refusal of a question names the parameter that is missing and an example of it. Those of `rows`
do not, which has them in a document of OpenAPI, nor do those of `opposite-unsaid`, which has them
nowhere.

What all of them keep: the paths below ``/api/v1/data``, the key as a bearer's, HTTP 401 for a wrong
one, and the clock in the header ``Date``. None of them has MCP, sockets, webhooks, plans or quotas.
"""
