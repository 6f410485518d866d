from tests.machine.kit import every_run_is_checked

__all__ = ["every_run_is_checked"]
