#!/usr/bin/env python3
"""The tree checks itself: layers, file sizes, headers that compile alone, banned calls, backends named elsewhere,
exported functions without a caller.

A folder under src/ may include itself and anything to its right in LAYERS; folders of one group never
include each other.
"""
import collections
import pathlib
import re
import subprocess
import sys
import tempfile

import backend_names

ROOT = pathlib.Path(__file__).resolve().parent.parent
SRC = ROOT / "src"
LAYERS = [
    {"cli"}, {"launch", "screen", "page"}, {"study", "plan"}, {"readback", "trace"}, {"run"}, {"judge"}, {"predict"}, {"result"}, {"words"}, {"loader", "checkpoint"},
    {"dataset"}, {"format"}, {"store"},
    {"metric", "workload"}, {"conf", "comm", "codec"}, {"os"}, {"base"}, {"recorder"},
]
RANK = {name: i for i, group in enumerate(LAYERS) for name in group}
LINES_MANY = 1000  # a warning
COLUMNS_MAX = 100
BANNED = re.compile(r"\b(strcpy|strcat|sprintf|vsprintf|strtok|gets|atoi|atol|atof|system|popen|alloca|rand|srand|"
                    r"gmtime|localtime|asctime|ctime)\s*\(")
# alloc.c: see its header; child.c: between fork and exec; signals.c: the third request
MAY_EXIT = ("src/base/alloc.c", "src/os/child.c", "src/os/signals.c")
# what people read is escaped on its way out, in one place; alloc.c: when there is no memory for that
MAY_PRINT = ("src/base/say.c", "src/base/alloc.c")
PRINTS = re.compile(r"\b(v?printf|v?dprintf|v?fprintf|f?puts|f?putc|putchar)\s*\(|\bfwrite\s*\([^;]*\bstd(out|err)\b")
# Named files are opened by base/file.h and base/file_out.h, which wait for nothing and follow nothing that others have
# prepared. Files of datasets are their store's.
OPENS = re.compile(r"(?<![\w.>])(fopen|fopen64|freopen|open|open64|openat|openat64|creat|gzopen|mkstemp|mkostemp|"
                   r"json_load_file|json_dump_file)\s*\(")
MAY_OPEN = {
    "src/store/posix.c": "the stores' files",
    "src/trace/recording/record_folder.c": "a key that ranks share under a lock, rings that are cut",
    "src/trace/replay/replay.c": "the files of a job, as it opened them", "src/trace/replay/replay_image.c": "the same files",
    "src/run/finish.c": "a new mark, O_EXCL and O_NOFOLLOW",
    "src/cli/main.c": "/dev/null", "src/launch/shepherd.c": "/dev/null", "src/launch/hosts_agent.c": "/dev/null",
    "src/comm/net_connect.c": "a file of the kernel",
    **{f"src/metric/{name}.c": "files of the kernel" for name in (
        "block_device", "fs_client", "io_limit", "iostat", "memory_pressure", "net_io", "proc_io", "processors", "series",
        "standstill")},
}
# Sentences are made at the edge: none is cut, compared or searched.
PROSE = re.compile(r"\bstr(str|cmp|ncmp|casecmp|_starts|_ends)\s*\([^;]*(->|\.)(text|sentence|reason|why|advice|note)\b")
MAY_READ_PROSE = {
    "src/plan/point.c": "a cell of a table that a user gave", "src/conf/override.c": "an override, as it was typed",
    "src/study/design.c": "names of columns that a user gave",
    "src/readback/derive_log.c": "a line of DLIO's log",
    **dict.fromkeys(("src/workload/key.c", "src/study/forecast.c"), "an equal sentence is said once"),
    **dict.fromkeys(("src/checkpoint/checkpoint.c", "src/dataset/generate.c", "src/dataset/manifest.c", "src/dataset/presence.c",
                     "src/readback/finding.c", "src/run/rank.c"), "an error that names the file or rank already is not given it again"),
}
# What one person can carry on, with some room. Growth is a change of these figures, and a line in the body of the commit
# that says what for.
SRC_LINES, SRC_FILES = 167500, 680
