"""Builds the wheels that can be built here, and the source distribution, and checks them.

One wheel per platform serves every Python from 3.10 on (abi3). zig links the Linux ones: against glibc 2.17 (manylinux2014), or
musl (musllinux 1.2). Wheels for macOS and Windows are built on these, by the release workflow.
"""

import argparse
import io
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

from elftools.elf.elffile import ELFFile

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = ROOT / "crates" / "lpgnn-python"
TOOLS = Path(sys.executable).parent
LICENCES = {"LICENSE-MIT", "LICENSE-APACHE"}
#: The platform tag that each target has to be compatible with.
TARGETS = {
    "x86_64-unknown-linux-gnu": "manylinux2014",
    "aarch64-unknown-linux-gnu": "manylinux2014",
    "x86_64-unknown-linux-musl": "musllinux_1_2",
    "aarch64-unknown-linux-musl": "musllinux_1_2",
}


def run(*command: str | Path) -> str:
    """Runs a tool of this environment, which finds the others, zig among them."""
    path = os.pathsep.join([str(TOOLS), os.environ["PATH"]])
    command = tuple(map(str, command))
    print("+", " ".join(command), flush=True)
    done = subprocess.run(command, cwd=PACKAGE, env={**os.environ, "PATH": path}, stdout=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"{done.stdout}{command[0]} failed")
    return done.stdout


def installed(target: str) -> bool:
    """Whether the standard library of a target is there."""
    folder = subprocess.run(["rustc", "--print", "target-libdir", "--target", target], stdout=subprocess.PIPE, text=True).stdout.strip()
    return bool(folder) and any(Path(folder).glob("libstd-*"))


def check(wheel: Path) -> None:
    """Raises an error unless the wheel is complete, and what its name says."""
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    for licence in LICENCES:
        if not any(name.endswith(f".dist-info/licenses/{licence}") for name in names):
            sys.exit(f"{wheel.name} has no {licence}")
    if "lpgnn/py.typed" not in names:
        sys.exit(f"{wheel.name} has no py.typed")
    run(TOOLS / "abi3audit", "--strict", wheel)
    if "musllinux" in wheel.name:
        # auditwheel looks for musl's libraries on this machine, which has none.
        if foreign := libraries(wheel) - {"libc.so"}:
            sys.exit(f"{wheel.name} needs {', '.join(sorted(foreign))}, but musllinux has libc.so alone")
    elif wheel.name.endswith(f"{os.uname().machine}.whl"):
        print(run(TOOLS / "auditwheel", "show", wheel))


def libraries(wheel: Path) -> set[str]:
    """The shared libraries that the extension modules of a wheel need."""
    needed = set()
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith(".so"):
                dynamic = ELFFile(io.BytesIO(archive.read(name))).get_section_by_name(".dynamic")
                needed |= {tag.needed for tag in dynamic.iter_tags("DT_NEEDED")}
    return needed


def check_source(archive: Path) -> None:
    """Raises an error unless the source distribution has the licences and all that it is built from."""
    with tarfile.open(archive) as files:
        names = {name.split("/", 1)[-1] for name in files.getnames()}
    wanted = {"PKG-INFO", "Cargo.lock", "pyproject.toml", "crates/lpgnn/src/lib.rs", "crates/lpgnn-python/src/lib.rs"}
    wanted |= {f"crates/lpgnn-python/{licence}" for licence in LICENCES}
    if missing := wanted - names:
        sys.exit(f"{archive.name} has no {', '.join(sorted(missing))}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder for the wheels")
    parser.add_argument("targets", nargs="*", help=f"[default: {' '.join(TARGETS)}]")
    arguments = parser.parse_args()
    out = arguments.out.resolve()
    shutil.rmtree(out, ignore_errors=True)
    missing = []
    for target in arguments.targets or TARGETS:
        if target not in TARGETS:
            sys.exit(f"{target} is none of {', '.join(TARGETS)}")
        if not installed(target):
            missing.append(target)
            continue
        options = ["--release", "--locked", "--zig", "--target", target, "--compatibility", TARGETS[target]]
        run(TOOLS / "maturin", "build", *options, "--out", out)
    run(TOOLS / "maturin", "sdist", "--out", out)
    built = sorted(out.iterdir())
    for wheel in built:
        check(wheel) if wheel.suffix == ".whl" else check_source(wheel)
    print(run(TOOLS / "twine", "check", "--strict", *built))
    print("built and checked:", *(f"  {each.name}" for each in built), sep="\n")
    for target in missing:
        print(f"not built: {target}, whose standard library is not installed (rustup target add {target})")
    print("not built here: the wheels for macOS and Windows, which .github/workflows/wheels.yml builds")


if __name__ == "__main__":
    main()
