"""Puts the documentation site together: the book, the Rust API, the Python API and the gallery of notebooks.

    MDBOOK=mdbook python release/site.py --doc target/doc --out target/site

Everything is made from the checkout and the installed package; the notebooks are run.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from html import escape
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


#: Pages outside of the book that it links to, and what they are called there.
PAGES = {
    "SECURITY.md": "Security",
    "docs/adr/README.md": "Decisions",
    "experiments/RESULTS.md": "Results",
    "experiments/STUDIES.md": "Studies",
    "experiments/LOG.md": "Log of experiments",
}
#: Where the README is in the book: its first page has to be at the top, because mdBook copies it to index.html.
FIRST = "introduction.md"


def book(out: Path) -> None:
    """The book, and the pages of the repository that it links to."""
    with tempfile.TemporaryDirectory() as folder:
        # mdBook has only what is below its source: links lead there, or are none.
        source = Path(folder) / "src"
        shutil.copytree(ROOT / "docs" / "src", source)
        shutil.copy(ROOT / "docs" / "book.toml", folder)
        shutil.copytree(ROOT / "docs" / "adr", source / "docs" / "adr")
        pictures = shutil.ignore_patterns("*.json", "*.toml", "*.csv", "folds")
        shutil.copytree(ROOT / "experiments", source / "experiments", ignore=pictures)
        shutil.copy(ROOT / "SECURITY.md", source)
        shutil.copy(ROOT / "README.md", source / FIRST)
        more = []
        for path, title in PAGES.items():
            more.append(f"- [{title}]({path})")
            if title == "Decisions":
                records = sorted((source / "docs" / "adr").glob("0*.md"))
                more += [f"  - [{heading(record)}](docs/adr/{record.name})" for record in records]
        summary = (source / "SUMMARY.md").read_text(encoding="utf-8").replace("# Summary\n", f"# Summary\n\n[Introduction]({FIRST})\n", 1)
        (source / "SUMMARY.md").write_text("\n".join([summary.rstrip(), *more, ""]), encoding="utf-8")
        for page in source.rglob("*.md"):
            page.write_text(relinked(page, source), encoding="utf-8")
        subprocess.run([os.environ.get("MDBOOK", "mdbook"), "build", folder, "--dest-dir", str(out)], check=True)


def heading(page: Path) -> str:
    """The first heading of a page."""
    first = next(line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("# "))
    return first.removeprefix("# ").strip()


def relinked(page: Path, source: Path) -> str:
    """The text of a page with links to where things are in the book."""
    place = page.relative_to(source)
    # Where the page is in the repository.
    outside = place.parts[0] in ("docs", "experiments") or place.name == "SECURITY.md"
    own = ROOT / "README.md" if place.name == FIRST else ROOT / place if outside else ROOT / "docs" / "src" / place

    def link(match: re.Match[str]) -> str:
        image, text, target, anchor = match.group(1), match.group(2), match.group(3), match.group(4) or ""
        if "://" in target or not target or place.name == "SUMMARY.md":
            return match.group(0)
        meant = Path(os.path.normpath(own.parent / target)).relative_to(ROOT)
        if meant == Path("docs/notebooks"):
            return f"[{text}]({'../' * len(place.parts)}index.html)"
        there = source / (meant.relative_to("docs/src") if meant.is_relative_to("docs/src") else meant)
        if not there.is_file():
            return text
        # mdBook calls this page so.
        there = there.with_name("index.md") if there.name == "README.md" else there
        return f"{image}[{text}]({os.path.relpath(there, page.parent)}{anchor})"

    return re.sub(r"(!?)\[([^\]]*)\]\(([^)#\s]*)(#[^)]*)?\)", link, page.read_text(encoding="utf-8"))


#: Progress is not worth a page.
QUIET = {"TQDM_DISABLE": "1", "PYTHONWARNINGS": "ignore:IProgress not found"}


def notebooks(out: Path) -> list[tuple[str, str]]:
    """The notebooks with their outputs: file and title."""
    out.mkdir()
    titles = []
    for path in sorted((ROOT / "docs" / "notebooks").glob("*.ipynb")):
        command = ["-m", "nbconvert", "--to", "html", "--execute", "--log-level=WARN", "--output-dir", str(out), str(path)]
        subprocess.run([sys.executable, *command], check=True, env={**os.environ, **QUIET})
        title = re.search(r'"# (.*?)\\n"', path.read_text(encoding="utf-8"))
        titles.append((f"{path.stem}.html", title.group(1) if title else path.stem))
    return titles


def front(gallery: list[tuple[str, str]]) -> str:
    """The first page."""
    links = [("book/index.html", "The book", "the method, settings, formats, runs, Python")]
    links += [("rust/lpgnn/index.html", "Rust API", "the library, beginning with the method on one page")]
    links += [("python/lpgnn.html", "Python API", "everything that the package exports")]
    items = "".join(f'<li><a href="{at}">{escape(name)}</a>: {escape(about)}</li>\n' for at, name, about in links)
    shown = "".join(f'<li><a href="notebooks/{at}">{escape(title)}</a></li>\n' for at, title in gallery)
    return (
        '<!doctype html>\n<html lang="en-GB"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        "<title>lpgnn</title>\n<style>body{font:1.05rem/1.6 system-ui,sans-serif;max-width:42rem;margin:3rem auto;padding:0 1rem}</style>\n"
        "<h1>lpgnn</h1>\n<p>Graph neural networks whose states are found by constrained optimisation.</p>\n"
        f"<ul>\n{items}</ul>\n<h2>Gallery</h2>\n<p>Notebooks, as they ran when this site was built.</p>\n<ul>\n{shown}</ul>\n</html>\n"
    )


def check(out: Path) -> None:
    """Raises an error unless the links of the first page and of the book lead somewhere."""
    pages = [out / "index.html", *(out / "book").rglob("*.html")]
    missing = []
    for page in pages:
        for link in re.findall(r'(?:href|src)="([^"#?]+)', page.read_text(encoding="utf-8")):
            if not re.match(r"[a-z]+:|//", link) and not (page.parent / link).exists():
                missing.append(f"{page.relative_to(out)} links to {link}")
    if missing:
        sys.exit("\n".join(sorted(set(missing))))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--doc", type=Path, required=True, help="what cargo doc has written")
    parser.add_argument("--out", type=Path, required=True, help="folder of the site")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    book(out / "book")
    shutil.copytree(arguments.doc, out / "rust")
    # Classes name the package as their module, not the file they are in, which pdoc warns of.
    subprocess.run([sys.executable, "-W", "ignore", "-m", "pdoc", "--docformat", "restructuredtext", "-o", str(out / "python"), "lpgnn", "lpgnn.estimators"], check=True)
    (out / "index.html").write_text(front(notebooks(out / "notebooks")), encoding="utf-8")
    check(out)
    print(f"the site is in {out}")


main()
