"""Speed as ratios against peers, measured side by side in one run on one machine."""
