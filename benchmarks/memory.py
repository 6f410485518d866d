"""Peak memory of a large run in full: rope_grad, 16 samples of 2048, hidden size 1280, numbers, checks, run folder.

The run is a process of its own (`ascend-sim run`), and the figure is the largest resident size that the operating
system saw of it: Python, libraries, inputs, outputs, run log and the writing of the reports.

    python benchmarks/memory.py [--json] [--tiny]
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

TARGET_MB = 900
FULL = ["--seq", ",".join(["2048"] * 16), "--hidden", "1280"]
TINY = ["--seq", "96", "--hidden", "128"]


def peak_mb(arguments: Sequence[str], folder: Path) -> float:
    """Return the peak resident size in MB (10^6 bytes) of `ascend-sim run rope_grad` with these arguments."""
    command = [sys.executable, "-m", "ascend_sim", "run", "rope_grad", "--quiet", *arguments]
    subprocess.run([*command, "--out", str(folder / "run")], check=True)
    # Linux counts in units of 1024 bytes, macOS in bytes.
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * unit / 1e6


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--json", action="store_true", help="print JSON and nothing else")
    parser.add_argument("--tiny", action="store_true", help="a small size, to try the program")
    options = parser.parse_args(words)
    with tempfile.TemporaryDirectory() as folder:
        peak = peak_mb(TINY if options.tiny else FULL, Path(folder))
    if options.json:
        print(json.dumps({"peak_mb": peak, "target_mb": TARGET_MB, "good": peak < TARGET_MB}))
        return
    size = "1 sample of 96, hidden 128" if options.tiny else "16 samples of 2048, hidden 1280"
    print(f"rope_grad, {size}: peak {peak:.0f} MB (target: below {TARGET_MB} MB)")


if __name__ == "__main__":
    main()
