"""What lies in ``deploy/``, and the metrics that it asks for."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

DEPLOY = Path(__file__).parents[2] / "deploy"


def rules() -> list[dict[str, Any]]:
    """The alert rules."""
    (group,) = yaml.safe_load((DEPLOY / "prometheus" / "weft.rules.yml").read_text())["groups"]
    found: list[dict[str, Any]] = group["rules"]
    return found


def dashboard() -> dict[str, Any]:
    """The dashboard."""
    found: dict[str, Any] = json.loads((DEPLOY / "grafana" / "weft.json").read_text())
    return found


def expressions() -> Iterator[str]:
    """Everything that is asked of Prometheus."""
    yield from (rule["expr"] for rule in rules())
    for panel in dashboard()["panels"]:
        yield from (target["expr"] for target in panel["targets"])
    for variable in dashboard()["templating"]["list"]:
        if variable["type"] == "query":
            yield variable["query"]["query"]


def metrics_in_use() -> set[str]:
    """The metrics of ours that they name, as a scrape names their families."""
    return {name.removesuffix("_total") for text in expressions() for name in re.findall(r"\bweft_\w+", text)}
