"""What a barrier between processes costs, for 2 to 512 processes on this machine: over sockets with all of them connected to
process 0, over the tree, and over MPI (MPI_Ibarrier with pauses) under each mpirun that is installed.

    barrier.py [--most N] [--most-mpi N] [--work US]

STOKER and STOKER_TOOLS name the program and the folder of net_bench. Microseconds from one barrier to the next, with
nothing between (--work: less the wait of so many microseconds before each), and the messages that process 0 handles. All
processes share this machine's processors: on hosts of their own, what counts is the depth and the messages of one process."""
import argparse
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

STOKER = os.path.abspath(os.environ.get("STOKER", "build/stoker"))
TOOLS = pathlib.Path(os.environ.get("STOKER_TOOLS", "build/tests"))
ENV = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")


def sockets(processes, work, tree_from):
    barriers = max(20, 2000 // processes)
    done = subprocess.run([TOOLS / "net_bench", str(processes), "1", str(barriers), str(work), str(tree_from)],
                          capture_output=True, text=True, timeout=300)
    found = re.search(r"([\d.-]+) us a barrier, ([\d.]+) messages, depth (\d+)", done.stdout)
    return f"{float(found[1]):9.0f} {float(found[2]):6.0f} {found[3]:>3}" if found else f"{'failed':>20}"


def mpi(library, processes):
    if not shutil.which(f"mpirun.{library}"):
        return "absent"
    with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
        slots = ["--oversubscribe"] if library == "openmpi" else []
        keys = [f"dataset.data_folder={tmp}/data", "dataset.format=npy", f"dataset.num_files_train={processes}",
                "dataset.record_length_bytes=4096", "reader.batch_size=1", "reader.read_threads=0", "train.epochs=1",
                "train.computation_time=0.001", "workflow.generate_data=true", "workflow.evaluation=false",
                "comm.barrier=mpi"]
        try:
            done = subprocess.run([f"mpirun.{library}", *slots, "-np", str(processes), STOKER, "run", "default", "-q", "-o",
                                   f"{tmp}/out", *keys], capture_output=True, text=True, env=ENV, timeout=300)
            with open(f"{tmp}/out/result.json") as f:
                return f"{1e6 * json.load(f)['barrier']['median_s']:.0f}"
        except (subprocess.TimeoutExpired, OSError, KeyError):
            return "failed"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--most", type=int, default=512, help="processes over sockets")
    p.add_argument("--most-mpi", type=int, default=512, help="processes over MPI")
    p.add_argument("--work", type=int, default=0, metavar="US")
    a = p.parse_args()
    print(f"{'':9} {'to process 0':^20} {'tree':^20} {'Open MPI':>9} {'MPICH':>9}")
    print(f"{'processes':>9} " + f"{'us':>9} {'mess.':>6} {'d':>3} " * 2 + f"{'us':>8} {'us':>9}")
    n = 2
    while n <= max(a.most, a.most_mpi):
        over = [sockets(n, a.work, f) if n <= a.most else " " * 20 for f in (1 << 30, 2)]
        over += [f"{mpi(library, n) if n <= a.most_mpi else '-':>9}" for library in ("openmpi", "mpich")]
        print(f"{n:9}", *over, flush=True)
        n *= 2


if __name__ == "__main__":
    main()
