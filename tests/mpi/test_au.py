"""The same store, the same AU: four ranks as one process, as two of two and as four of one, reading from a
store of known speed. The store's bandwidth is shared within a process, so each of n processes gets an n-th
of it, as the ranks of one process do. What differs is measured again with times doubled and then doubled again, so that
the lateness of a busy machine weighs less, and must agree in 3 of 4 attempts."""
# beside one
import os
import tempfile

from launchers import LIBRARIES, STOKER, attempts, load, mpirun, need_mpi, run, stoker, tiny

need_mpi()
RANKS, BYTES, COMPUTE, STEPS = 4, 131072, 0.15, 10
RATE = RANKS * BYTES / 0.25  # a quarter of a second a sample for each rank: AU 60 %


def arguments(data, out, processes, slower=1):
    return [*tiny(data, out, files=RANKS * STEPS, reader__batch_size=1, dataset__record_length_bytes=BYTES,
                  train__computation_time=COMPUTE * slower, storage__store="throttle+posix", reader__read_threads=1,
                  storage__throttle__bandwidth=RATE / slower / processes, output__metric__exclude_start_steps=2)]


def au(out):
    return load(out)["training"]["au_mean_percent"]


with tempfile.TemporaryDirectory(dir="/dev/shm") as tmp:
    data = f"{tmp}/data"
    stoker("generate", *arguments(data, None, 1))

    def once(attempt):
        seen = {}
        configurations = {"one process": ([os.path.abspath(STOKER), "run"], 1)}
        for library in LIBRARIES:
            for processes in (2, 4):
                configurations[f"{library} {processes}x{RANKS // processes}"] = (mpirun(library, processes), processes)
        for name, (command, processes) in configurations.items():
            out = f"{tmp}/{name.replace(' ', '-')}-{attempt}"
            run([*command, *arguments(data, out, processes, 2**min(attempt, 2)), "-n", RANKS])
            seen[name] = au(out)
        print(", ".join(f"{k}: {v:.2f} %" for k, v in seen.items()))
        return max(seen.values()) - min(seen.values()) <= 1, seen

    right, seen = attempts("one store, one AU", once)
    assert right, f"AU differs by more than a point: {seen}"
    assert 40 < seen["one process"] < 70, f"neither the store nor the computation alone is to decide: {seen}"
