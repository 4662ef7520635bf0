"""Speed as ratios against peers, measured side by side in one run on one machine."""

from __future__ import annotations

import toolkit  # noqa: F401 - before polars, of which it sets how memory is kept
