"""The image, the workflow and the hooks use the commands of the README, the CI and the Makefile."""

import json
import re
import shlex
import tomllib
from pathlib import Path

import yaml

ROOT = Path(__file__).resolve().parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text(encoding="utf-8")


def test_the_image_runs_the_first_command_of_the_readme() -> None:
    (entry,) = re.findall(r"^ENTRYPOINT (.*)$", DOCKERFILE, re.MULTILINE)
    (arguments,) = re.findall(r"^CMD (.*)$", DOCKERFILE, re.MULTILINE)
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (first,) = re.findall(r"^pip install .*\n(emea align .*)$", readme, re.MULTILINE)
    # the image has the examples next to the code, and runs in the folder that the user mounts
    assert re.search(
        r"^WORKDIR /emea\n(?:(?!WORKDIR).*\n)*COPY docs/examples examples$",
        DOCKERFILE,
        re.M,
    )
    command = [*json.loads(entry), *json.loads(arguments)]
    assert command == shlex.split(first.replace("docs/examples/", "/emea/examples/"))


def test_the_image_contains_what_it_installs_and_reads() -> None:
    copied = [
        words.split()[:-1]
        for words in re.findall(r"^COPY (.*)$", DOCKERFILE, re.MULTILINE)
    ]
    names = [name for words in copied for name in words]
    ignored = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    assert all((ROOT / name).exists() and f"!{name}" in ignored for name in names)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    included = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert {
        *included["packages"],
        *included["force-include"],
        project["project"]["readme"],
    } <= {*names}


def test_the_workflow_runs_the_command_of_the_ci_everywhere() -> None:
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    job = workflow["jobs"]["test"]
    assert job["steps"][-1] == {"run": ".ci/run"}
    assert job["strategy"]["matrix"]["python"] == ["3.11", "3.12", "3.13"]
    assert any("arm" in system for system in job["strategy"]["matrix"]["os"])


def test_the_hooks_are_those_of_make_test() -> None:
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"][0][
        "hooks"
    ]
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for hook in hooks:
        assert f"\t{hook['entry'].replace('.venv/bin', '$(BIN)')}" in makefile
