"""What models' runs did, as collections of the state root: ``dd_runs`` and ``dd_run_operators``."""
