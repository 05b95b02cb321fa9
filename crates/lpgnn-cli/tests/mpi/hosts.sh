#!/bin/bash
# Runs the SLURM scripts of the book on three hosts: hosts.sh LPGNN
#
# The hosts are network namespaces on this machine, joined by a bridge that leads nowhere else; sbatch and srun are replaced by a few lines
# that do what these scripts need of them, by Open MPI over TCP. Results have to be those of one process, bit for bit; also when a process, or
# all of a host, is killed on the way, and when the disk is full. LPGNN is a build with MPI.
#
# Needs root, network namespaces and Open MPI; without them, it says so and succeeds.
set -eu -o pipefail

program=$(realpath "$1")
book=$(realpath "$(dirname "$0")/../../../../docs/src/cluster.md")
id=$$
place=$(mktemp -d)
hosts=3

skip() {
    echo "skipped: SLURM scripts on three hosts, because $1"
    exit 0
}

fail() {
    echo "SLURM scripts on three hosts: $1" >&2
    exit 1
}

clean_up() {
    umount "$place/full" 2>/dev/null || true
    for i in $(seq $hosts); do ip netns del "lpgnn$id-$i" 2>/dev/null || true; done
    ip link del "lp$id" 2>/dev/null || true
    rm -rf "$place"
}
trap clean_up EXIT

[ "$(id -u)" = 0 ] || skip "only root can make network namespaces"
command -v ip >/dev/null || skip "ip (iproute2) is not here"
mpirun --version 2>/dev/null | grep -q "Open MPI" || skip "mpirun is not that of Open MPI"

up() {
    ip link add name "lp$id" type bridge && ip link set "lp$id" up || return 1
    for i in $(seq $hosts); do
        ip netns add "lpgnn$id-$i" || return 1
        ip link add "lp$id-$i" type veth peer name eth0 netns "lpgnn$id-$i" || return 1
        ip link set "lp$id-$i" master "lp$id" up
        ip -n "lpgnn$id-$i" addr add "10.77.0.$i/24" dev eth0
        ip -n "lpgnn$id-$i" link set eth0 up
        ip -n "lpgnn$id-$i" link set lo up
    done
}
up 2>"$place/up.txt" || skip "network namespaces cannot be made ($(head -1 "$place/up.txt"))"

mkdir "$place/bin" "$place/tmp"
cat >"$place/bin/rsh" <<END
#!/bin/bash
# The remote shell of these hosts, each with its own temporary files: rsh [options] ADDRESS COMMAND…
while [ "\${1#-}" != "\$1" ]; do shift; done
host=\$1; shift
mkdir -p "$place/tmp/\$host"
TMPDIR="$place/tmp/\$host" exec ip netns exec "lpgnn$id-\${host##*.}" bash -c "\$*"
END
cat >"$place/bin/srun" <<END
#!/bin/bash
# The tasks of a job, on all hosts.
while [ "\${1#-}" != "\$1" ]; do shift; done
exec ip netns exec lpgnn$id-1 mpirun --allow-run-as-root -n "\$SLURM_NTASKS" -H 10.77.0.1:9,10.77.0.2:9,10.77.0.3:9 --map-by node --bind-to none --mca mpi_yield_when_idle 1 \\
    --mca plm_rsh_agent "$place/bin/rsh" --mca btl tcp,self --mca btl_tcp_if_include eth0 --mca oob_tcp_if_include eth0 \\
    --mca orte_keep_fqdn_hostnames 1 -x PATH -x LPGNN_CACHE "\$@"
END
cat >"$place/bin/sbatch" <<END
#!/bin/bash
# A job, or an array of jobs at the same time, the i-th of which is on the i-th host: sbatch [--array=LIST] SCRIPT
asked=""
case \$1 in --array=*) asked=\${1#--array=}; shift ;; esac
option() { sed -n "s/^#SBATCH.*--\$1=\\([^ ]*\\).*/\\1/p" "\$2" | head -1; }
# All hosts share the processors of one machine.
export SLURM_NTASKS=\$(option ntasks "\$1") SLURM_CPUS_PER_TASK=1
array=\${asked:-\$(option array "\$1")}
[ -n "\$array" ] || exec bash "\$1"
case \$array in *-*) array=\$(seq -s, "\${array%-*}" "\${array#*-}") ;; esac
jobs=""
for task in \${array//,/ }; do
    SLURM_ARRAY_TASK_ID=\$task ip netns exec "lpgnn$id-\$((1 + task % $hosts))" bash "\$1" &
    jobs="\$jobs \$!"
done
for job in \$jobs; do wait "\$job" || failed=1; done
exit "\${failed:-0}"
END
cat >"$place/bin/lpgnn" <<END
#!/bin/bash
# Training from the start takes other numbers of epochs than it would, and checkpoints are frequent.
[ "\$1" != train ] || set -- "\$@" --checkpoint-epochs 50
for argument in "\$@"; do
    case \$argument in --resume) exec "$program" "\$@" ;; esac
done
exec "$program" "\$@" --set "training.epochs=\${EPOCHS:-20}" --set training.patience=none
END
chmod +x "$place"/bin/*
export PATH="$place/bin:$PATH" LPGNN_CACHE="$place/no-cache" TMPDIR="$place/tmp"
cd "$place"

# The scripts as the book shows them: what begins with #!, each with its name in the second line.
awk -v place="$place" '
    /^```bash$/ { inside = 1; name = ""; next }
    /^```$/ { inside = 0 }
    inside && /^# [a-z]+\.sbatch$/ { name = place "/" $2; print "#!/bin/bash" > name }
    inside && name { print > name }
' "$book"
for script in train crossval search; do
    [ -e "$script.sbatch" ] || fail "the book has no script $script.sbatch"
done

"$program" data generate communities --nodes 600 --out graph --quiet >/dev/null
"$program" data partition graph --parts 32 --out ordered --quiet >/dev/null
"$program" data generate clique --graphs 40 --out DATA --quiet >/dev/null
printf '[values]\n"model.state-dim" = [2, 4, 8]\n"model.dropout" = [0.0, 0.3]\n' >space.toml

said() { echo "ok: $*"; }
pids() { for i in $(seq $hosts); do ip netns pids "lpgnn$id-$i"; done; }
# Results of two folders, without how long they took.
same_results() {
    for file in "$1"/*.json; do
        diff <(sed 's/"seconds":[^,}]*//g' "$file") <(sed 's/"seconds":[^,}]*//g' "$2/${file##*/}") >/dev/null || fail "$file is not that of one process"
    done
}
same_model() { cmp -s "$1/model.safetensors" "$2/model.safetensors" || fail "$1 has another model than one process"; }

lpgnn train ordered --out alone --quiet --threads 1 >/dev/null
sbatch train.sbatch >/dev/null 2>train.txt || { cat train.txt >&2; fail "train.sbatch failed"; }
same_model run alone
said "train.sbatch, on three hosts, ends with the bits of one process"

# A process is killed, and then all of a host.
rm -rf run alone
EPOCHS=1500 lpgnn train ordered --out alone --quiet --threads 1 >/dev/null
for victim in process host; do
    EPOCHS=1500 setsid sbatch train.sbatch >/dev/null 2>killed.txt &
    job=$!
    for _ in $(seq 600); do [ -e run/checkpoint.safetensors ] && break; sleep 0.1; done
    sleep 0.3
    of_host=$(ip netns pids "lpgnn$id-2")
    if [ $victim = process ]; then of_host=$(for p in $of_host; do grep -qx lpgnn "/proc/$p/comm" && echo "$p"; done | tail -1); fi
    [ -n "$of_host" ] || { cat killed.txt >&2; fail "there is nothing to kill on the second host"; }
    # shellcheck disable=SC2086
    kill -9 $of_host
    begun=$(date +%s)
    wait $job && fail "a job without one of its processes has succeeded"
    seconds=$(($(date +%s) - begun))
    [ $seconds -le 20 ] || fail "a job without a $victim has ended after $seconds seconds"
    for _ in $(seq 100); do [ -n "$(pids)" ] || break; sleep 0.1; done
    [ -z "$(pids)" ] || fail "processes go on after a job has ended: $(pids)"
    said "a job has ended $seconds seconds after a $victim was killed: $(grep -m1 -E 'rank .* signal|lost communication|daemon' killed.txt | tr -s ' ')"
done
sbatch train.sbatch >/dev/null 2>train.txt || { code=$?; cat train.txt >&2; fail "train.sbatch has not resumed, but ended with $code"; }
same_model run alone
said "it has resumed to the bits of one process"

lpgnn crossval DATA --folds 10 --out cv-alone --quiet >/dev/null
sbatch --array=1,3,4,5 crossval.sbatch >/dev/null 2>crossval.txt || { cat crossval.txt >&2; fail "crossval.sbatch failed"; }
lpgnn crossval DATA --folds 10 --out cv --collect >/dev/null 2>missing.txt && fail "what is incomplete was collected"
grep -qx "error: cv lacks folds 2 and 7" missing.txt || fail "it was told: $(cat missing.txt)"
sbatch crossval.sbatch >/dev/null 2>crossval.txt || { cat crossval.txt >&2; fail "crossval.sbatch failed"; }
lpgnn crossval DATA --folds 10 --out cv --collect --quiet >/dev/null
same_results cv cv-alone
said "crossval.sbatch, an array on three hosts, ends with the result of one process"

lpgnn search DATA --space space.toml --budget 30 --out found-alone --quiet >/dev/null
sbatch search.sbatch >/dev/null 2>search.txt || { cat search.txt >&2; fail "search.sbatch failed"; }
same_results found found-alone
same_model found found-alone
said "search.sbatch, on three hosts, ends with the result of one process"

# The disk is full after the run has begun, and then it is not.
mkdir full && mount -t tmpfs -o size=400k lpgnn full || { said "full disks were not tried: tmpfs cannot be mounted"; exit 0; }
export SLURM_NTASKS=3
EPOCHS=10 srun lpgnn train ordered --out full/run --quiet --threads 1 >/dev/null
head -c 400k /dev/zero >full/other 2>/dev/null || true
srun lpgnn train --resume full/run --epochs 20 --quiet --threads 1 >/dev/null 2>full.txt && fail "a full disk was not noticed"
[ "$(grep -c '^error: ' full.txt)" = 1 ] || { cat full.txt >&2; fail "a full disk was not told in one sentence"; }
rm full/other
srun lpgnn train --resume full/run --epochs 20 --quiet --threads 1 >/dev/null 2>full2.txt || { cat full2.txt >&2; fail "a run whose disk was full has not resumed"; }
EPOCHS=10 lpgnn train ordered --out full-alone --quiet --threads 1 >/dev/null
lpgnn train --resume full-alone --epochs 20 --quiet --threads 1 >/dev/null
same_model full/run full-alone
said "a full disk has ended a job ($(grep -m1 '^error: ' full.txt)), which has resumed to the bits of one process"
