"""Completion: every command, option, workload and key is a candidate of 'stoker __complete', which prints nothing for what
nobody types and never fails; bash, zsh and fish complete with the scripts of 'stoker show completion'. Names of files that
hold commands, blanks or escape sequences arrive as they are and run nothing."""
# tier: long
# takes 40 s
import fcntl
import os
import pathlib
import pty
import random
import re
import select
import shutil
import struct
import subprocess
import sys
import tempfile
import termios
import time

sys.path.insert(0, os.path.join(os.path.dirname(__file__), ".."))
from util import PATIENCE, SOURCE, STOKER, left_out, stoker  # noqa: E402

PROGRAM = os.path.abspath(STOKER)
HOSTILE = ["$(touch x)", "`touch x`", "a;touch x", "a&touch x", "b  c", "q'u\"o", "n\nl", "e\x1b]0;t\x07", "~root", "*?[a]", "back\\slash",
           "d=e:f", "$HOME", "#c", "!!"]
SHELLS = ("bash", "zsh", "fish")


def candidates(*words):
    done = subprocess.run([PROGRAM, "__complete", *words], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0 and not done.stderr, (words, done)
    lines = done.stdout.splitlines()
    assert all(line.count("\t") == 1 for line in lines), (words, done.stdout)
    pairs = [line.split("\t") for line in lines]
    assert all(text for _, text in pairs), (words, pairs)
    return {name: text for name, text in pairs if name}, [text for name, text in pairs if not name]


def options(*command):
    """{option: the name of its value or None} of a command's help."""
    found = {}
    for line in stoker(*command, "--help").stdout.split("\nexamples:")[0].splitlines():
        m = re.match(r"  (?:-\w, )?(--[\w-]+)(?:\[=[^]]*\]| \[?([^\]\s]+)\]?)?(?:\s|$)", line)
        if m:
            found[m.group(1)] = m.group(2)
    return found


def commands():
    """Every command as words, those with subcommands too."""
    out = []
    for line in stoker("--help").stdout.split("commands:\n")[1].split("\n\n")[0].splitlines():
        name = line.split()[0]
        out.append((name,))
        text = stoker(name, "--help").stdout
        if "' lists the options of each" in text:
            body = text.split("\n\n", 1)[1].split(f"\n'stoker {name} ...")[0]
            out += [(name, m.group(1)) for m in re.finditer(r"^  ([a-z]+)\b", body, re.M)]
    return out


def workloads():
    return [line.split()[0] for line in stoker("show", "workloads").stdout.splitlines() if re.match(r"(?!workload )[a-z0-9_]+ +\S", line)]


def keys():
    return sorted(set(re.findall(r"^\| `([a-z_0-9.]+)` \|", (SOURCE / "docs/config.md").read_text(), re.M)))


def the_words():
    """All that the tables have, asked of the program itself."""
    every = commands()
    assert len(every) > 20 and ("show", "completion") in every, every
    for words in every:
        assert words[-1] in candidates(*words)[0] and words[-1] in candidates(*words[:-1], words[-1][:2])[0], words
        if any(c[:-1] == words for c in every):
            continue
        known = options(*words)
        assert set(known) == set(candidates(*words, "--")[0]), (words, known)
        for name, value in known.items():
            expected = ("files" if value in ("FILE", "RESULT", "LOG", "PROGRAM", "WORKLOAD", "RUN") else
                        "folders" if value in ("DIR", "FOLDER") else None)
            if value and name != "--checkpoint":
                for form in (candidates(*words, name, ""), candidates(*words, f"{name}=")):
                    assert form[1] == ([expected] if expected else []), (words, name, value, form)
    assert set(candidates("run", "--progress", "")[0]) == {"auto", "panel", "lines", "json", "none"}
    assert set(candidates("run", "--progress=p")[0]) == {"--progress=panel"}
    assert candidates("run", "-n", "") == ({}, []) and candidates("run", "-o", "") == ({}, ["folders"])

    names = workloads()
    assert len(names) > 20 and set(names) <= set(candidates("run", "")[0]) and "files" in candidates("run", "")[1]
    for name in names:
        assert name in candidates("run", "-n", "4", name[:3])[0] and not candidates("run", name, name[:3])[0].get(name)
    assert set(candidates("capacity", names[0] + ":2", names[1][:4])[0]) >= {names[1]}

    every = keys()
    assert len(every) > 150
    for key in every:
        typed = key
        while typed:  # a section at a time
            typed = typed[:-1]
            found = candidates("run", names[0], typed)[0]
            rest = key[len(typed):].split(".")
            assert typed + rest[0] + ("." if len(rest) > 1 else "=") in found, (key, typed, found)
            if len(every) > 150 and random.random() < 0.7:
                break
    for head in ("++workload.", "+", "++", "workload.", "NAME:", "~"):
        end = "" if head == "~" else "="
        assert f"{head}reader.batch_size{end}" in candidates("study", "run", "d.csv", head + "reader.ba")[0], head
    for topic, key in (("formats", "dataset.format"), ("loaders", "reader.data_loader"), ("stores", "storage.store")):
        listed = {m.group(1) for m in re.finditer(r"^([a-z_0-9]+)\b", stoker("show", topic).stdout.split("\n\n")[-1], re.M)}
        found = {c.split("=")[1].rstrip("+") for c in candidates("run", names[0], key + "=")[0]}
        assert found == listed and len(found) > 4, (found, listed)
    assert list(candidates("run", names[0], "storage.store=throttle+po")[0]) == ["storage.store=throttle+posix"]
    assert set(candidates("run", names[0], "train.shuffle=")[0]) == set() and len(candidates("run", names[0], "compat.dlio=")[0]) == 2
    assert candidates("run", names[0], "dataset.data_folder=")[1] == ["folders"]
    assert candidates("record", "--", "python3", "")[1] == ["files"]
    return every, names


def nothing_typed(tmp):
    """Words that nobody types: no candidate, status 0, and nothing happens."""
    for word in (*HOSTILE, "\x1b[2J", "a\nb", "\x7f", "$(touch x):reader.", "--progress=$(touch x)", "--$(touch x)", "reader.batch_size=$(touch x)",
                 "++`touch x`", "%s%n", "é", "x" * 100000, "", " "):
        for before in ((), ("run",), ("run", "--output"), ("study",), ("show", "config"), ("$(touch x)",), ("run", "\x1b")):
            found, _ = candidates(*before, word)
            assert all(c.startswith(word) and re.fullmatch(r"[\w+~:=,./-]+", c) for c in found), (before, word, found)
            assert not found or word == "" and "\x1b" not in before or word == "n", (before, word, found)
    rng = random.Random(7)
    pieces = ["run", "--", "-", "=", "reader.", ":", "+", "~", "--progress", "study", "storage.store=", "\x01", "*", "workload=", "-o", "help", "."]
    for _ in range(300):
        candidates(*("".join(rng.choices(pieces, k=rng.randint(0, 3))) for _ in range(rng.randint(0, 5))))
    assert candidates() == candidates("")
    assert not list(tmp.rglob("x"))


# ---- in a terminal ----

class Terminal:
    """An interactive shell; what the line became after TAB is written to a file by a key of its own."""

    def __init__(self, words, env, folder, setup):
        self.line, self.args = folder.parent / "line", folder.parent / "args"
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(folder)
            os.execvpe(words[0], words, env)
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 2000, 200, 0, 0))
        self.heard = b""
        ready = folder.parent / "ready"
        ready.unlink(missing_ok=True)
        self.send(setup.format(line=self.line) + f"\n: >{ready}\n")
        self.wait(ready.exists)

    def send(self, text):
        os.write(self.fd, os.fsencode(text))

    def wait(self, there):
        end = time.monotonic() + 60 * PATIENCE
        while not there():
            assert time.monotonic() < end, self.heard[-3000:].decode(errors="replace")
            if select.select([self.fd], [], [], 0.005)[0]:
                self.heard += os.read(self.fd, 65536)

    def completed(self, text):
        """The line that `text` and a TAB make."""
        self.line.unlink(missing_ok=True)
        self.send(text + "\t\x18l")
        self.wait(lambda: self.line.exists() and self.line.read_text().endswith("\0"))
        self.send("\x15")
        return self.line.read_text()[:-1]

    def run(self, text):
        """What the program is given when that line is sent."""
        self.args.unlink(missing_ok=True)
        self.send(text + "\t\n")
        self.wait(lambda: self.args.exists() and self.args.read_bytes().endswith(b"\0end\0"))
        return self.args.read_bytes().split(b"\0")[:-2]

    def end(self):
        os.close(self.fd)
        os.waitpid(self.pid, 0)


SETUP = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "set +H; bind 'set completion-query-items 0'; bind 'set page-completions off'; "
             "bind 'set enable-bracketed-paste off'; source <(stoker show completion bash); "
             """bind -x '"\\C-xl":printf "%s\\0" "$READLINE_LINE" >{line}'"""),
    "zsh": (["zsh", "-f", "-i"], "autoload -U compinit; compinit -D; setopt no_beep no_bang_hist; unset zle_bracketed_paste; LISTMAX=10000; bindkey -e; bindkey '^I' complete-word; "
            "source <(stoker show completion zsh); keep() {{ print -rn -- \"$BUFFER\"$'\\0' >{line} }}; zle -N keep; bindkey '^Xl' keep; bindkey '^U' kill-whole-line"),
}


def shortest(item, items):
    """What has to be typed of an item so that all that begins so begins with the item."""
    return next(item[:n] for n in range(1, len(item) + 1) if all(i.startswith(item) for i in items if i.startswith(item[:n])))


def cases(names):
    """(what stands before, the item, all that may stand there)"""
    every = commands()
    top = [c[0] for c in every if len(c) == 1] + ["help", "version"]
    out = [("stoker", name, top) for name in top if name not in ("help", "version")]
    for c in every:
        if len(c) == 2:
            out.append((f"stoker {c[0]}", c[1], [x[1] for x in every if len(x) == 2 and x[0] == c[0]]))
        if not any(x[:-1] == c for x in every):
            all_of = list(options(*c))
            out += [("stoker " + " ".join(c), o, all_of) for o in all_of]
    return out + [("stoker run", name, names) for name in names]


VALUES = [("stoker run --progress pan", "--progress panel"), ("stoker run --progress=pan", "--progress=panel"), ("stoker run unet3d_h100 read", " reader."),
          ("stoker run unet3d_h100 reader.queue_d", " reader.queue_depth="), ("stoker run unet3d_h100 ++workload.reader.data_loader=pyt", ".data_loader=pytorch"),
          ("stoker run unet3d_h100 dataset.format=hd", "dataset.format=hdf5"), ("stoker run unet3d_h100 storage.store=throttle+po", "=throttle+posix"),
          ("stoker study run d.csv unet3d:reader.queue_d", " unet3d:reader.queue_depth="), ("stoker run unet3d_h100 dataset.data_folder=pla", "dataset.data_folder=plain/"),
          ("stoker run --output pla", "--output plain/"), ("stoker run --output=pla", "--output=plain/"), ("stoker show completion fi", "completion fish"),
          ("stoker report plain/fi", "report plain/file"), ("stoker run -n pla", "-n pla")]


def in_terminal(shell, tmp, env, names):
    words, setup = SETUP[shell]
    t = Terminal(words, env, tmp / "here", setup)
    try:
        count = 0
        for before, item, items in cases(names):
            line = t.completed(f"{before} {shortest(item, items)}")
            assert line.rstrip() == f"{before} {item}", (shell, before, item, line)
            count += 1
        for typed, end in VALUES:
            line = t.completed(typed)
            assert line.rstrip(" ").endswith(end), (shell, typed, line)
            assert line[-1:] not in ("=", ".", "/") or not line.endswith(" "), (shell, line)
        # the whole line goes to the program, which is given the very name; nothing else has run
        for i, name in enumerate(HOSTILE):
            for form in ("stoker report h{}/", "stoker replay log --data=h{}/", "stoker run unet3d_h100 dataset.data_folder=h{}/"):
                got = t.run(form.format(i))
                head = form.split()[-1].format(i)
                assert os.fsdecode(got[-1]).rstrip("/") == head + name, (shell, name, got)
        # names that were typed as commands are not carried out to complete what follows
        for word in ("$(touch x)", "`touch x`", "'$(touch x)'", "<(touch x)"):
            for line in (f"stoker run {word}", f"stoker run {word} reader.", f"stoker report {word}/", f"stoker run dataset.data_folder={word}"):
                t.completed(line)
    finally:
        t.end()
    assert not list(tmp.rglob("x")), shell
    print(f"{shell}: {count} words, {len(VALUES)} values, {3 * len(HOSTILE)} hostile names")


def installed_in_zsh(tmp, env):
    """As a function of zsh's own folder, which compinit finds."""
    (tmp / "functions").mkdir()
    shutil.copy(SOURCE / "src/cli/completion/stoker.zsh", tmp / "functions/_stoker")
    words, setup = SETUP["zsh"]
    setup = setup.replace("autoload -U compinit", f"fpath=({tmp}/functions $fpath); autoload -U compinit").replace("source <(stoker show completion zsh); ", "")
    t = Terminal(words, env, tmp / "here", setup)
    try:
        for _ in range(2):
            assert t.completed("stoker run --progress pan") == "stoker run --progress panel "
    finally:
        t.end()


def in_fish(tmp, env, names):
    asked = [(f"{before} {item[:-1]}", item) for before, item, _ in cases(names)]
    asked += [(typed, None) for typed, _ in VALUES] + [(f"stoker report h{i}/", None) for i in range(len(HOSTILE))]
    asked += [(f"stoker run {w} reader.", None) for w in ("$(touch x)", "(touch x)", "'$(touch x)'")]
    # the names of lines are numbers: a line break in a name of a file would look like one
    script = "stoker show completion fish | source\n" + "".join(
        f"echo '==== {i}'; complete -C --escape '{line}'\n".replace("'$(touch x)' ", "\\'$(touch x)\\' ") for i, (line, _) in enumerate(asked))
    done = subprocess.run(["fish", "--no-config", "-c", script], env=env, cwd=tmp / "here", capture_output=True, text=True, timeout=300 * PATIENCE)
    assert done.returncode == 0 and not done.stderr, done.stderr[:3000]
    answers = re.split(r"^==== \d+\n", done.stdout, flags=re.M)[1:]
    assert len(answers) == len(asked), (len(answers), len(asked))
    for (line, item), answer in zip(asked, answers):
        found = [a.split("\t")[0] for a in answer.splitlines()]
        assert item is None or item in found, (line, found)
    for (typed, end), answer in zip(VALUES, answers[-len(VALUES) - len(HOSTILE) - 3:]):
        found = answer.splitlines()
        tail = end.split()[-1]
        tail = tail if tail.endswith("=") else re.split("[=:]", tail)[-1]
        assert any(f.split("\t")[0].endswith(tail) for f in found) == (not typed.endswith("-n pla")), (typed, found)
    for i, (name, answer) in enumerate(zip(HOSTILE, answers[-len(HOSTILE) - 3:])):
        # fish itself reads its escaped form back
        word = answer.rstrip("\n").split("\t")[0]
        back = subprocess.run(["fish", "--no-config", "-c", f"printf '%s' {word}"], env=env, cwd=tmp / "here", capture_output=True, text=True, timeout=60)
        assert back.stdout.rstrip("/") == f"h{i}/{name}", (name, answer, back)
    assert not list(tmp.rglob("x"))
    print(f"fish: {len(asked)} lines")


def main():
    with tempfile.TemporaryDirectory() as tmp:
        tmp = pathlib.Path(tmp)
        here = tmp / "here"
        (tmp / "bin").mkdir()
        (here / "plain").mkdir(parents=True)
        (here / "plain/file").write_text("")
        for i, name in enumerate(HOSTILE):
            (here / f"h{i}" / name).mkdir(parents=True)
        os.chdir(here)
        _, names = the_words()
        nothing_typed(tmp)
        for shell in SHELLS:
            script = stoker("show", "completion", shell).stdout
            assert script == (SOURCE / f"src/cli/completion/stoker.{shell}").read_text()
        for words in ((), ("csh",), ("bash", "zsh")):
            assert stoker("show", "completion", *words, status=None).returncode == 2
        # what completes is the program; what is run only keeps what it was given
        (tmp / "bin/stoker").write_text(f"""#!/bin/sh
case $1 in
__complete|show) exec '{PROGRAM}' "$@" ;;
esac
printf '%s\\0' "$@" end >'{tmp}/args'
""")
        (tmp / "bin/stoker").chmod(0o755)
        env = {"PATH": f"{tmp}/bin:{os.environ['PATH']}", "HOME": str(tmp), "TERM": "xterm", "LC_ALL": "C.UTF-8", "PS1": "> ", "ZDOTDIR": str(tmp)}
        for shell in SHELLS:
            if not shutil.which(shell):
                left_out(f"{shell} is not installed")
            elif shell == "fish":
                in_fish(tmp, env, names)
            else:
                in_terminal(shell, tmp, env, names)
        if shutil.which("zsh"):
            installed_in_zsh(tmp, env)


main()
