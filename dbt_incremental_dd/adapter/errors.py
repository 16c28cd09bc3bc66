"""The engine's errors as dbt reports them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from dbt_common.exceptions import DbtRuntimeError

from dbt_incremental_dd.core.errors import ColumnsError, DifferentialError


@contextmanager
def dbt_errors() -> Iterator[None]:
    """What is raised inside with a DifferentialError is raised as DbtRuntimeError, or as dbt's ContractError."""
    try:
        yield
    except ColumnsError as error:
        raise _contract_error(error) from error
    except DifferentialError as error:
        raise DbtRuntimeError(str(error)) from error


def _contract_error(error: ColumnsError) -> Exception:
    from dbt.exceptions import ContractError

    both = ([{"name": name, "data_type": dtype} for name, dtype in pairs] for pairs in (error.declared, error.found))
    found: Exception = ContractError(*both)
    return found
