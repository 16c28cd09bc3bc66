"""Runs from a shell: how long a `dbt run` takes that has nothing, or little, to do."""
