"""For an Airflow installation whose plugins folder is this one: Airflow loads modules from it, and this module imports
the package beside it."""

from airflow_differential.plugin import DifferentialPlugin

__all__ = ["DifferentialPlugin"]
