"""dbt's own tests of adapters (the package dbt-tests-adapter), run against this one.

What is left out, and why: ``left_out.py``. ``test_complete.py`` checks that nothing else is.
"""
