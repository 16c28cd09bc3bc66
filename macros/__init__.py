"""dbt macros of the adapter; dbt finds them by this path."""

import os

PACKAGE_PATH = os.path.dirname(__file__)
