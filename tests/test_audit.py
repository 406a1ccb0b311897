"""What the audit of dependencies makes of what pip-audit says."""

import json
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

SCRIPT = Path(__file__).resolve().parents[1] / ".ci" / "audit"
WEAK = {"id": "GHSA-1", "fix_versions": ["2.1"], "aliases": [], "description": ""}


@pytest.fixture
def audit(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setattr("sys.dont_write_bytecode", True)
    loader = SourceFileLoader("audit", str(SCRIPT))
    spec = spec_from_loader("audit", loader)
    assert spec is not None
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def package(name: str, **facts: Any) -> dict[str, Any]:
    return {"name": name, "version": "1.0", "vulns": [], **facts}


@pytest.mark.parametrize(
    ("packages", "status", "text"),
    [
        ([package("a", skip_reason="not found")], 0, "audit skipped: the database knows none of"),
        ([package("a"), package("b", skip_reason="x")], 0, "audited 1 of 2 packages: 0 with known"),
        ([package("a", vulns=[WEAK])], 1, "a 1.0: GHSA-1, mended in 2.1"),
    ],
)
def test_verdicts(
    packages: list[dict[str, Any]],
    status: int,
    text: str,
    audit: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(audit, "advisories", lambda: json.dumps({"dependencies": packages}))
    assert audit.main() == status
    assert text in capsys.readouterr().out


def test_where_nothing_can_be_reached_it_is_said(
    audit: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(audit, "advisories", lambda: audit.call("false"))
    assert audit.main() == 0
    assert capsys.readouterr().out == "audit skipped: false failed: no reason given\n"
