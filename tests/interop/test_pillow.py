"""The real Pillow opens what we write and finds every pixel; we read what Pillow writes; and both ask
for a file by the same requests: offset, size asked and size returned, in the same order."""
# takes 24 s
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
from strace_requests import explain, requests, skip
from util import tiny

TOOL = os.path.join(os.environ["STOKER_TOOLS"], "format_tool")
PYTHON = "/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable

# The tests' content, as tests/tools/test_content.h has it.
PILLOW = """
import io, json, sys, zlib
import numpy as np
from PIL import Image, PngImagePlugin, features
def content(shape, file_index):
    o = np.arange(int(np.prod(shape)), dtype=np.uint64)
    v = o * 131 + (o >> np.uint64(8)) * 7 + (o >> np.uint64(16)) * 13 + file_index * 17 + 5
    return v.astype(np.uint8).reshape(shape)
def smooth(shape):
    y, x = np.mgrid[0:shape[0], 0:shape[1]]
    return ((np.sin(x / 9.0) + np.cos(y / 7.0)) * 60 + 120 + content(shape, 1) % 7).astype(np.uint8)
def save(how, path, shape, file_index):
    gray = Image.fromarray(content(shape, file_index))
    if how in ("png", "jpeg"): gray.save(path)
    elif how == "png-filters": Image.fromarray(smooth(shape)).save(path)
    elif how == "png-rgb": Image.fromarray(smooth(shape)).convert("RGB").save(path)
    elif how == "png-rgba": Image.fromarray(smooth(shape)).convert("RGBA").save(path)
    elif how == "png-la": Image.fromarray(smooth(shape)).convert("LA").save(path)
    elif how == "png-1bit": gray.convert("1").save(path)
    elif how == "png-palette": gray.convert("P").save(path)
    elif how == "png-16bit": Image.fromarray(smooth(shape).astype(np.uint16) * 200).save(path)
    elif how == "png-text":
        info = PngImagePlugin.PngInfo()
        info.add_text("Comment", "words " * 9000)
        gray.save(path, pnginfo=info)
    elif how == "jpeg-rgb": Image.fromarray(smooth(shape)).convert("RGB").save(path)
    elif how == "jpeg-cmyk": Image.fromarray(smooth(shape)).convert("CMYK").save(path)
    elif how == "jpeg-progressive": gray.save(path, progressive=True)
    elif how == "jpeg-exif": gray.save(path, exif=b"Exif\\0\\0II*\\0\\x08\\0\\0\\0\\0\\0" + b"x" * 60000)
    elif how == "jpeg-icc": gray.save(path, icc_profile=b"p" * 300000)
    elif how == "jpeg-best": gray.save(path, quality=100)
def noise(path, shape):
    b = io.BytesIO()
    Image.fromarray(np.random.default_rng(1).integers(0, 256, shape, dtype=np.uint8)).save(b, "jpeg")
    ours, theirs = open(path, "rb").read(), b.getvalue()
    assert ours[:328] == theirs[:328], path
    return ours, len(ours) / len(theirs), np.asarray(Image.open(path)).std() / np.asarray(Image.open(b)).std()
for job in json.load(sys.stdin):
    if job[0] == "noise":
        parts = []
        for path in job[1]:
            data, size, deviation = noise(path, job[2])
            assert 0.99 < size < 1.01 and 0.97 < deviation < 1.03, (path, size, deviation)
            parts.append(data[328:])
        data = b"".join(parts)
        assert len(zlib.compress(data, 9)) > 0.998 * len(data)
        continue
    if job[0] == "save":
        save(*job[1:])
        continue
    how, path, shape, file_index = job[1:]
    want = content(shape, file_index)
    image = Image.open(path)
    got = np.asarray(image)
    assert image.mode == "L" and got.shape == tuple(shape), (path, image.mode, got.shape)
    if how == "png":
        assert (got == want).all(), path
        Image.open(path).verify()
    else:
        assert image.info["jfif"] == 257 and image.info["jfif_density"] == (1, 1), image.info
        noise(path, want.shape)
"""
LOAD = """
import sys, numpy as np
from PIL import Image
np.asarray(Image.open(sys.argv[1]))
"""

SHAPES = [(5, 7), (1, 1), (32, 32), (63, 64), (1, 3000), (3000, 1), (300, 400), (1000, 1500),
          (700, 20000), (2900, 3000)]
FOREIGN = ["png", "png-filters", "png-rgb", "png-rgba", "png-la", "png-1bit", "png-palette",
           "png-16bit", "png-text", "jpeg", "jpeg-rgb", "jpeg-cmyk", "jpeg-progressive", "jpeg-exif",
           "jpeg-icc", "jpeg-best"]
# rows x columns whose files have about 1 KiB to 10 MiB; sizes near multiples of the pieces
TRACED = [(32, 32), (55, 64), (61, 66), (62, 65), (240, 270), (255, 256), (256, 256), (300, 400),
          (1000, 1500), (50, 20000), (3200, 3300)]
BLOCKS = (None, 512, 65536, 1048576)
# one of each way to be read: pieces of pixels, a long piece before them
BLOCKED = ("png-rgb", "png-text", "jpeg", "jpeg-icc")


def pillow(jobs):
    run = subprocess.run([PYTHON, "-c", PILLOW], input=json.dumps(jobs), text=True, check=True,
                         stdout=subprocess.PIPE)
    if run.stdout:
        print(run.stdout.strip())


def spec(path, shape, file_index=0, samples=2):
    return [path, str(file_index), "uint8", str(samples)] + [str(d) for d in shape]


def tool(*args):
    run = subprocess.run([TOOL] + list(args), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                         text=True)
    if run.returncode != 0:
        raise SystemExit("%s: %s" % (" ".join(args), run.stderr))
    return run.stdout


def check_contents(folder):
    jobs, saves = [], []
    for i, shape in enumerate(SHAPES):
        for fmt in ("png", "jpeg"):
            path = os.path.join(folder, "ours%d.%s" % (i, fmt))
            tool("write", fmt, *spec(path, shape, i))
            tool("verify", fmt, *spec(path, shape, i))
            jobs.append(("check", fmt, path, shape, i))
    pillow(jobs)
    for how in FOREIGN:
        for i, shape in enumerate(SHAPES[:8]):
            # a reader has room for gray files of the same shape, so not for two such rows in colour
            if shape == (1, 3000) and how in ("png-rgb", "png-rgba", "png-la", "png-16bit"):
                continue
            saves.append(("save", how, os.path.join(folder, "%s%d" % (how, i)), shape, i))
    pillow([(j[0], j[1], j[2] + "." + j[1].split("-")[0]) + j[3:] for j in saves])
    for _, how, path, shape, i in saves:
        fmt = how.split("-")[0]
        same = how in ("png", "png-text")
        for access, decode, python, buffer in itertools.product(
                ("framework", "native"), ("full", "verify", "none"), ("311", "314"), ("0", "1048576")):
            # which Python it is matters to a framework's requests alone
            if (decode != "verify" or same) and (access == "framework" or python == "311"):
                tool("read", fmt, access, decode, python, buffer, "1",
                     *spec(path + "." + fmt, shape, i))
    return len(jobs), len(saves)


def check_noise(folder):
    """Generated files are as large and as bright as Pillow's of noise; nothing is found to compress."""
    data = pathlib.Path(folder) / "data"
    subprocess.run([os.environ["STOKER"], "generate"] +
                   [str(x) for x in tiny(data, None, fmt="jpeg", files=3, dataset__record_length_bytes=1000 * 1000)],
                   check=True, stdout=subprocess.DEVNULL)
    pillow([("noise", sorted(str(p) for p in (data / "train").iterdir()), (1000, 1000))])


def check_requests(folder):
    bad = compared = 0
    generation = "314" if sys.version_info >= (3, 14) else "311"
    cases = [("%s-ours" % fmt, shape, (None, 65536)) for fmt in ("png", "jpeg") for shape in TRACED]
    cases += [(how, (300, 400), BLOCKS if how in BLOCKED else (None,)) for how in FOREIGN]
    cases += [(how, shape, (None,)) for how in ("png", "jpeg") for shape in TRACED]
    for how, shape, blocks in cases:
        fmt = how.split("-")[0]
        path = os.path.join(folder, "traced." + fmt)
        if how.endswith("-ours"):
            tool("write", fmt, *spec(path, shape))
        else:
            pillow([("save", how, path, shape, 0)])
        for block in blocks:
            real, _ = requests([PYTHON, "-c", LOAD, path], path, block)
            more = () if block else ("none", "verify") if how.endswith("-ours") else ("none",)
            for decode in ("full",) + more:
                mine, _ = requests([TOOL, "read", fmt, "framework", decode, generation, "0", "1"] +
                                   spec(path, shape), path, block)
                compared += len(real)
                if real != mine:
                    explain("%s %s, %d bytes, request size %s, decode %s" %
                            (how, shape, os.path.getsize(path), block, decode), real, mine)
                    bad += 1
    return compared, bad


def main():
    try:
        pillow([])
    except subprocess.CalledProcessError:
        skip("Pillow is not installed for %s" % PYTHON)
    with tempfile.TemporaryDirectory() as folder:
        ours, theirs = check_contents(folder)
        check_noise(folder)
        compared, bad = check_requests(folder)
    print("Pillow opened %d files of ours, we %d of its; %d requests compared, %d files with a "
          "difference" % (ours, theirs, compared, bad))
    return 1 if bad or not compared else 0


sys.exit(main())
