"""What is published has all that a registry shows, and that a licence asks for."""

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[3]
CRATES = ["lpgnn", "lpgnn-baselines", "lpgnn-cli", "lpgnn-python"]
VERSION = re.search(r'^version = "(.*)"$', (ROOT / "Cargo.toml").read_text(encoding="utf-8"), re.MULTILINE).group(1)


@pytest.mark.parametrize("crate", CRATES)
def test_every_package_has_the_licences_of_the_project(crate):
    for name in ("LICENSE-MIT", "LICENSE-APACHE"):
        assert (ROOT / "crates" / crate / name).read_bytes() == (ROOT / name).read_bytes()


@pytest.mark.parametrize("crate", CRATES)
def test_the_page_of_a_package_has_no_link_that_only_works_in_the_repository(crate):
    text = (ROOT / "crates" / crate / "README.md").read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)]*)\)", text)
    assert all(link.startswith("https://") for link in links), links


def test_one_version_everywhere():
    workspace = (ROOT / "Cargo.toml").read_text(encoding="utf-8")
    assert f'lpgnn = {{ path = "crates/lpgnn", version = "{VERSION}" }}' in workspace
    assert f"\nversion: {VERSION}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


@pytest.mark.skipif(sys.version_info < (3, 11), reason="tomllib")
def test_metadata_are_complete():
    import tomllib

    project = tomllib.loads((ROOT / "crates/lpgnn-python/pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = {"name", "description", "readme", "requires-python", "license", "license-files", "keywords", "classifiers", "authors"}
    assert wanted <= set(project)
    for crate in ("lpgnn", "lpgnn-baselines", "lpgnn-cli"):
        package = tomllib.loads((ROOT / f"crates/{crate}/Cargo.toml").read_text(encoding="utf-8"))["package"]
        wanted = {"description", "license", "readme", "keywords", "categories", "include", "metadata", "rust-version", "authors"}
        assert wanted <= set(package), crate


def test_the_workflows_are_yaml():
    yaml = pytest.importorskip("yaml")
    for path in sorted((ROOT / ".github/workflows").glob("*.yml")):
        # YAML reads the key `on` as true.
        assert {"name", True, "jobs", "permissions"} <= set(yaml.safe_load(path.read_text(encoding="utf-8"))), path.name
