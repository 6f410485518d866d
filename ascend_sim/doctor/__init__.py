"""Edits that cure a kernel: proposed from its findings and its source, kept only where a run with them is clean."""
