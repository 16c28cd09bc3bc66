"""``python -m dbt_incremental_dd.cli`` is ``dbt-dd``."""

import sys

from dbt_incremental_dd.cli import main

sys.exit(main())
