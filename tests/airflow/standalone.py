"""A real Airflow of the tests' own: its database, scheduler, DAG processor, triggerer and API server."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import httpx

_BIN = Path(sys.executable).parent
PARTS = ("api-server", "scheduler", "dag-processor", "triggerer")


class Airflow:
    """Airflow in a folder, with the DAGs of another one."""

    def __init__(self, home: Path, dags: Path, environment: Mapping[str, str]) -> None:
        self.home = home
        home.mkdir(parents=True, exist_ok=True)
        port = _free_port()
        self.url = f"http://localhost:{port}"
        self._environment = {
            **os.environ,
            "PATH": f"{_BIN}:{os.environ['PATH']}",
            "AIRFLOW_HOME": str(home),
            "AIRFLOW__API__BASE_URL": self.url,
            "AIRFLOW__API__PORT": str(port),
            "AIRFLOW__API__WORKERS": "1",
            "AIRFLOW__API_AUTH__JWT_SECRET": "of the tests " * 8,
            "AIRFLOW__CORE__DAGS_FOLDER": str(dags),
            "AIRFLOW__CORE__EXECUTION_API_SERVER_URL": f"{self.url}/execution/",
            "AIRFLOW__CORE__LOAD_EXAMPLES": "False",
            "AIRFLOW__CORE__PARALLELISM": "3",
            "AIRFLOW__COSMOS__ENABLE_TELEMETRY": "False",
            "AIRFLOW__DAG_PROCESSOR__BUNDLE_REFRESH_CHECK_INTERVAL": "2",
            "AIRFLOW__LOGGING__TRIGGER_LOG_SERVER_PORT": str(_free_port()),
            "AIRFLOW__LOGGING__WORKER_LOG_SERVER_PORT": str(_free_port()),
            "AIRFLOW__SCHEDULER__ENABLE_HEALTH_CHECK": "False",
            **environment,
        }
        self._parts: dict[str, subprocess.Popen[bytes]] = {}
        self._client = httpx.Client(base_url=self.url, timeout=60)

    def start(self) -> None:
        """Returns when it answers and all DAGs are read."""
        self.call("db", "migrate")
        for part in PARTS:
            self.start_part(part)
        until(lambda: self._is_up(), 180, "Airflow answers")
        self._client.headers["Authorization"] = f"Bearer {self.token()}"

    def call(self, *arguments: str) -> str:
        """What a command of Airflow's says."""
        done = subprocess.run(
            [_BIN / "airflow", *arguments],
            env=self._environment,
            cwd=self.home,
            capture_output=True,
            text=True,
            timeout=300,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    def start_part(self, part: str) -> None:
        """Starts one of its processes; its output is in ``<part>.log``."""
        with (self.home / f"{part}.log").open("ab") as log:
            self._parts[part] = subprocess.Popen(
                [_BIN / "airflow", part],
                env=self._environment,
                cwd=self.home,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def kill_part(self, part: str) -> None:
        """Ends one of its processes and what it has started, at once."""
        process = self._parts.pop(part)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait(30)

    def stop(self) -> None:
        """Ends all of it."""
        for part in list(self._parts):
            self.kill_part(part)
        self._client.close()

    @property
    def password(self) -> str:
        """Of the administrator, which Airflow has made."""
        return str(json.loads((self.home / "simple_auth_manager_passwords.json.generated").read_text())["admin"])

    def token(self) -> str:
        """Of the administrator."""
        answer = self._client.post("/auth/token", json={"username": "admin", "password": self.password})
        return str(answer.raise_for_status().json()["access_token"])

    def _is_up(self) -> bool:
        for part, process in self._parts.items():
            assert process.poll() is None, (self.home / f"{part}.log").read_text()[-3000:]
        try:
            return self._client.get("/api/v2/monitor/health").status_code == 200
        except httpx.TransportError:
            return False

    def get(self, path: str, **query: Any) -> Any:
        """An answer of the REST API."""
        return self._client.get(f"/api/v2/{path}", params=query).raise_for_status().json()

    def send(self, method: str, path: str, body: Any) -> Any:
        """An answer of the REST API; what was refused is told. One that says to come again later (503) is asked for
        again."""
        deadline = time.monotonic() + 60
        while True:
            answer = self._client.request(method, f"/api/v2/{path}", json=body)
            if answer.status_code != 503 or time.monotonic() > deadline:
                break
            time.sleep(1)
        assert answer.is_success, f"{method} {path}: {answer.status_code} {answer.text}"
        return answer.json()

    def unpause(self, dag: str) -> None:
        """Lets a DAG run, when it has been read."""

        def is_read() -> bool:
            errors = self.get("importErrors")["import_errors"]
            assert not errors, errors
            return self._client.get(f"/api/v2/dags/{dag}").status_code == 200

        until(is_read, 120, f"the DAG {dag} is read")
        self.send("PATCH", f"dags/{dag}", {"is_paused": False})

    def trigger(self, dag: str, start: str | None = None, end: str | None = None) -> str:
        """A run of an interval, or of now; its id."""
        interval = {"data_interval_start": start, "data_interval_end": end} if start else {}
        return str(self.send("POST", f"dags/{dag}/dagRuns", {"logical_date": start, **interval})["dag_run_id"])

    def state(self, dag: str, run: str, task: str) -> str | None:
        """Of a task's instance."""
        return self.get(f"dags/{dag}/dagRuns/{run}/taskInstances/{task}")["state"]

    def wait(self, dag: str, run: str, wanted: str = "success", seconds: float = 300) -> None:
        """Until a run has ended so. Fails with its tasks' logs where it has ended otherwise."""

        def ended() -> bool:
            state = self.get(f"dags/{dag}/dagRuns/{run}")["state"]
            other = {"success": "failed", "failed": "success"}[wanted]
            assert state != other, f"{dag} {run}: {state}\n{self.logs(dag, run)}"
            return bool(state == wanted)

        until(ended, seconds, f"{dag} {run} is {wanted}", lambda: self.logs(dag, run))

    def runs(self, dag: str) -> list[dict[str, Any]]:
        """All runs of a DAG, the earliest first."""
        return list(self.get(f"dags/{dag}/dagRuns", order_by="run_after", limit=100)["dag_runs"])

    def logs(self, dag: str, run: str) -> str:
        """Of all tasks of a run: state and log."""
        told = []
        for task in self.get(f"dags/{dag}/dagRuns/{run}/taskInstances")["task_instances"]:
            told.append(f"-- {task['task_id']}: {task['state']}")
            if task["try_number"]:
                told.append(self.log(dag, run, task["task_id"], task["try_number"]))
        return "\n".join(told)

    def log(self, dag: str, run: str, task: str, attempt: int = 1) -> str:
        """Of one try of a task."""
        found = self.get(f"dags/{dag}/dagRuns/{run}/taskInstances/{task}/logs/{attempt}", full_content=True)["content"]
        return "\n".join(str(line.get("event", line)) + str(line.get("error_detail", "")) for line in found)

    def xcom(self, dag: str, run: str, task: str) -> Any:
        """A task's value."""
        found = self.get(f"dags/{dag}/dagRuns/{run}/taskInstances/{task}/xcomEntries/return_value", deserialize=True)
        return found["value"]

    def page(self, path: str, logged_in: bool = True) -> httpx.Response:
        """An answer of what is not the REST API."""
        with httpx.Client(base_url=self.url, headers=self._client.headers if logged_in else {}, timeout=60) as client:
            return client.get(path)


def until(holds: Callable[[], bool], seconds: float, what: str, more: Callable[[], str] = str) -> None:
    """Waits for it; an AssertionError where it never came."""
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, f"not within {seconds} s: {what}\n{more()}"
        time.sleep(1.5)  # an answer of Airflow's takes it some 0.1 s


def _free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])
