"""Results as a picture: size against speed, for encoding and decoding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench import figures

PANELS = {
    "encode": "encode",
    "decode_fresh": "decode all into fresh memory",
    "decode_touched": "decode the largest into touched memory",
}


def draw(results: dict[str, Any], path: Path) -> None:
    """One row of panels for each file that has sizes and speeds. ImportError without matplotlib, ValueError if none."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
    from matplotlib.ticker import NullFormatter

    files = [entry for entry in results["files"] if "sizes" in entry["sections"] and PANELS.keys() & entry["sections"]]
    if not files:
        raise ValueError("a chart needs sizes, and encode or decode")
    figure, grid = plt.subplots(
        len(files), len(PANELS), figsize=(5 * len(PANELS), 4 * len(files)), squeeze=False, layout="constrained"
    )
    for panels, entry in zip(grid, files):
        sizes = entry["sections"]["sizes"]
        shares = {row["name"]: row["nbytes"] / sizes["original_nbytes"] for row in sizes["rows"] if row["nbytes"]}
        for axes, (key, title) in zip(panels, PANELS.items()):
            table = entry["sections"].get(key, {"rows": []})
            for name, share in shares.items():
                row = figures.row(table, name)
                if row is not None:
                    speed = table["nbytes"] / min(row["seconds"]) / 1e9
                    axes.scatter(speed, share, color="tab:red" if name == figures.OURS else "tab:blue")
                    axes.annotate(name, (speed, share), xytext=(4, 4), textcoords="offset points", fontsize=8)
            axes.set(xscale="log", xlabel="GB/s, best, one core", ylabel="size, of the .safetensors", title=title)
            axes.xaxis.set_minor_formatter(NullFormatter())
            axes.margins(x=0.2)
            axes.grid(alpha=0.3)
        panels[0].text(0, 1.12, Path(entry["path"]).name, transform=panels[0].transAxes, weight="bold")
    figure.suptitle(f"{results['machine']['cpu']}, commit {results['machine']['commit']}")
    figure.savefig(path, dpi=120)
    plt.close(figure)
