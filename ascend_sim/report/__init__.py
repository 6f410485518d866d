"""Reports: pure functions of a run's log and chip. Nothing here touches the machine."""
