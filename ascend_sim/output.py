"""What kernels print: whole lines on standard output, each with the block that printed it."""

from __future__ import annotations


class Output:
    """Collects the text of each core until a line is complete, so that lines of cores do not mix."""

    def __init__(self) -> None:
        self._begun: dict[str, str] = {}

    def write(self, label: str, text: str) -> None:
        """Take text of one core; print the lines that it completes."""
        lines = (self._begun.get(label, "") + text).split("\n")
        self._begun[label] = lines.pop()
        for line in lines:
            print(f"[{label}] {line}")

    def close(self) -> None:
        """Print what has no end of line."""
        for label, line in self._begun.items():
            if line:
                print(f"[{label}] {line}")
        self._begun.clear()
