"""Programs that take orders: ours and the peers, each in a process of its own, and who else is busy."""

import json
import os
import shutil
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
TARGET = os.path.abspath(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")))
WORK = os.path.join(TARGET, "peers")
VENV = os.path.join(WORK, "venv")
PYTHON = os.path.join(VENV, "bin", "python")

# Freed memory is kept and lies in huge pages: up to twice as fast for frameworks that allocate in
# every step. Ours does not, and runs without.
ALLOCATOR = {
    "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1",
    "MALLOC_MMAP_THRESHOLD_": "34359738368",
    "MALLOC_TRIM_THRESHOLD_": "34359738368",
}

# name: (what it is, script, its options, packages, whether it computes the same as ours)
PEERS = {
    "jax": ("JAX, jit, factored", "jax_lpgnn.py", [], ["jax"], True),
    "torch-compiled": ("PyTorch, compiled, factored", "torch_lpgnn.py", ["--form", "compiled"], ["torch"], True),
    "torch-sparse": ("PyTorch, sparse products, factored", "torch_lpgnn.py", ["--form", "sparse"], ["torch"], True),
    "torch-authors": ("PyTorch, the authors' way", "torch_lpgnn.py", ["--form", "authors"], ["torch"], True),
    "torch-unrolled": ("unrolled GNN, T = 5, PyTorch", "torch_unrolled.py", ["--steps", "5"], ["torch"], False),
    "gin": ("GIN, 5 layers, PyTorch Geometric", "geometric_gin.py", [], ["torch", "torch-geometric"], False),
}
OURS = {
    "ours": ("**lpgnn**, bdmm", ["--solver", "bdmm"], True),
    "ours-avx2": ("**lpgnn**, bdmm, AVX2 alone", ["--solver", "bdmm"], True),
    "ours-one-shot": ("**lpgnn**, one-shot", ["--solver", "one-shot"], False),
    "ours-unrolled": ("**lpgnn**, unrolled GNN, T = 5", ["--solver", "unrolled-5"], False),
}


class Failure(Exception):
    """A program that ended instead of answering."""


class Worker:
    """A program that has loaded its workload and waits for orders."""

    def __init__(self, name, label, agrees, command, threads, first_core=None, **environment):
        self.name, self.label, self.agrees = name, label, agrees
        environment = dict(os.environ, OMP_NUM_THREADS=str(threads), MKL_NUM_THREADS=str(threads), **environment)
        cores = sorted(os.sched_getaffinity(0))
        cores = cores[-threads:] if first_core is None else cores[first_core:][:threads]
        self.errors = open(os.path.join(WORK, "stderr"), "w+")
        self.process = subprocess.Popen(
            command, env=environment, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=self.errors, preexec_fn=lambda: os.sched_setaffinity(0, cores))
        self.ready = self._answer()
        self.medians, self.least, self.peak, self.others = [], float("inf"), 0, []

    @classmethod
    def start(cls, name, benches, workload, output, threads, start):
        """Ours or a peer on a folder of raw arrays, from the point in the folder `start`."""
        if name in OURS:
            label, options, agrees = OURS[name]
            folder, workload = os.path.split(workload)
            # The iterating solvers have other multipliers, and start where they like.
            options = options + ["--raw", folder] + (["--start", start] if agrees else [])
            return cls.ours(benches, workload, output, threads, *options, name=name, label=label, agrees=agrees)
        label, script, options, _, agrees = PEERS[name]
        command = [PYTHON, os.path.join(HERE, "peers", script), "--workload", workload]
        command += ["--start", start, "--threads", str(threads), "--output", output] + options
        return cls(name, label, agrees, command, threads, **ALLOCATOR, JAX_PLATFORMS="cpu", PYTHONWARNINGS="ignore",
                   TORCHINDUCTOR_CACHE_DIR=os.path.join(WORK, "inductor"))

    @classmethod
    def ours(cls, benches, workload, output, threads, *options, name="ours", label="", agrees=False):
        command = [benches["update"], workload, "--serve", "--threads", str(threads), *options]
        narrow = {"LPGNN_SIMD": "avx2"} if name == "ours-avx2" else {}
        return cls(name, label, agrees, command + (["--tanh"] if output == "tanh" else []), threads, **narrow)

    @classmethod
    def training(cls, benches, threads, *data):
        """Ours, training by the defaults for some data."""
        command = [benches["training"], *data, "--serve", "--threads", str(threads)]
        return cls("ours", "", False, command, threads)

    @classmethod
    def gin_training(cls, path, threads, *options, first_core=None):
        command = [PYTHON, os.path.join(HERE, "peers", "geometric_gin_training.py"), path, "--threads", str(threads), *options]
        return cls("gin", "", False, command, threads, first_core, **ALLOCATOR, PYTHONWARNINGS="ignore")

    def _answer(self):
        line = self.process.stdout.readline()
        if not line:
            self.process.wait()
            self.errors.seek(0)
            said = self.errors.read().strip().splitlines()
            raise Failure(said[-1] if said else f"ended with {self.process.returncode}")
        return json.loads(line)

    def order(self, *words):
        try:
            self.process.stdin.write(" ".join(map(str, words)) + "\n")
            self.process.stdin.flush()
        except BrokenPipeError:
            pass
        return self._answer()

    def run(self, seconds):
        """Updates for that long; remembers the times and how busy everybody else was."""
        begin, busy, own = time.time(), busy_seconds(), self._own_seconds()
        answer = self.order("run", seconds)
        elapsed = time.time() - begin
        others = busy_seconds() - busy - (self._own_seconds() - own)
        self.others.append(max(0.0, others / elapsed))
        times = answer["ms"]
        self.medians.append(times[len(times) // 2])
        self.least = min(self.least, times[0])
        self.peak = answer["peak_mb"]

    def _own_seconds(self):
        with open(f"/proc/{self.process.pid}/stat") as file:
            fields = file.read().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def end(self):
        self.process.stdin.close()
        self.process.wait()
        self.errors.close()


def take_turns(alive, rounds, seconds, talk):
    """Gives each its turn, again and again, so that what disturbs one disturbs all."""
    for turn in range(rounds):
        talk(f"round {turn + 1} of {rounds}")
        for worker in alive:
            # Threads of the one before, if they spin while they wait, come to rest.
            time.sleep(0.3)
            worker.run(seconds)


def run_json(command):
    answer = subprocess.run(command, stdout=subprocess.PIPE, text=True)
    if answer.returncode:
        sys.exit(f"{' '.join(command)} failed")
    return json.loads(answer.stdout)


def talk(text):
    print(text, file=sys.stderr, flush=True)


def busy_seconds():
    """Seconds that all processors together have worked."""
    with open("/proc/stat") as file:
        fields = [int(field) for field in file.readline().split()[1:]]
    return (sum(fields[:3]) + sum(fields[5:8])) / os.sysconf("SC_CLK_TCK")


def build(benches):
    """These benchmarks, as cargo builds them for release: name → path."""
    command = ["cargo", "bench", "--locked", "--workspace", "--features", "lpgnn/fetch", "--no-run", "--message-format", "json"]
    for name in benches:
        command += ["--bench", name]
    answer = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    if answer.returncode:
        sys.exit("the benchmarks do not build")
    artefacts = (json.loads(line) for line in answer.stdout.splitlines() if line.startswith("{"))
    return {artefact["target"]["name"]: artefact["executable"] for artefact in artefacts
            if artefact.get("executable") and "bench" in artefact["target"]["kind"]}


def build_program():
    command = ["cargo", "build", "--release", "--locked", "--workspace", "--features", "lpgnn/fetch", "--bin", "lpgnn"]
    if subprocess.run(command, cwd=ROOT).returncode:
        sys.exit("the program does not build")
    return os.path.join(TARGET, "release", "lpgnn")


def has_avx512():
    """Whether ours uses more than AVX2 here."""
    with open("/proc/cpuinfo") as file:
        return "avx512f" in file.read()


def build_python():
    """A folder with the Python package, its extension built for release."""
    command = ["cargo", "build", "--release", "--locked", "-p", "lpgnn-python"]
    if subprocess.run(command, cwd=ROOT).returncode:
        sys.exit("the Python package does not build")
    folder, package = os.path.join(WORK, "python"), os.path.join(ROOT, "crates", "lpgnn-python", "python", "lpgnn")
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(package, os.path.join(folder, "lpgnn"), ignore=shutil.ignore_patterns("__pycache__", "*.so"))
    shutil.copy(os.path.join(TARGET, "release", "lib_native.so"), os.path.join(folder, "lpgnn", "_native.abi3.so"))
    return folder


def make_venv():
    if not os.path.exists(PYTHON):
        print(f"making {VENV}", file=sys.stderr)
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    if install(["numpy"]):
        sys.exit("numpy cannot be installed, and nothing can be compared without it")


def install(packages):
    """Installs packages in their pinned versions; what went wrong, if anything."""
    pins = os.path.join(HERE, "peers", "requirements.txt")
    wanted = [line.strip() for line in open(pins) if line.split("==")[0] in packages]
    code = ("import importlib.metadata as m, sys\n"
            "sys.exit(any(m.version(w.split('==')[0]) != w.split('==')[1] for w in sys.argv[1:]))")
    quiet = dict(stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    if subprocess.run([PYTHON, "-c", code, *wanted], **quiet).returncode == 0:
        return None
    print("installing " + ", ".join(wanted), file=sys.stderr)
    command = [PYTHON, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-c", pins, *wanted]
    answer = subprocess.run(command, stderr=subprocess.PIPE, text=True)
    if answer.returncode:
        return (answer.stderr.strip().splitlines() or ["pip failed"])[-1]
    return None


def find(data, name):
    """The folder of that name, however deep, that is a data set rather than its folds."""
    for folder, folders, _ in sorted(os.walk(data)) if data else []:
        if name in folders and "folds" not in folder:
            return os.path.join(folder, name)
    return None
