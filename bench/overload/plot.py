"""Draw goodput against offered load. ``python plot.py DATA.json PICTURE.png``, where there is matplotlib."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib.pyplot as plt  # type: ignore[import-not-found,unused-ignore]

data = json.loads(Path(sys.argv[1]).read_text())
figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
for number, curve in enumerate(data["servers"]):
    points, rate = curve["points"], curve["sustainable"]
    offered, good = [each["offered"] for each in points], [each["good"] for each in points]
    axes.plot(offered, good, marker="o", markersize=4, label=f"{curve['name']}, which sustains {rate:.0f}/s")
    axes.axvline(2 * rate, color=f"C{number}", linewidth=0.8, linestyle="--")
limit = data["capacity"]
axes.axhline(limit, color="grey", linewidth=0.8, linestyle=":", label="the model's own limit")
axes.plot([0, limit], [0, limit], color="grey", linewidth=0.8)
axes.set(xlabel="offered, requests/s", ylabel=f"answered within {data['slo_ms']:g} ms, requests/s", ylim=(0, None))
axes.set_title("Goodput against offered load (dashed: twice what each sustains)")
axes.legend()
figure.savefig(sys.argv[2], dpi=130)
