"""For an Airflow whose plugins folder this is: there plugins are found in modules, and the package beside this one is
imported from the folder."""

from airflow_differential.plugin import DifferentialPlugin

__all__ = ["DifferentialPlugin"]
