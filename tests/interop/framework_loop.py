"""A training loop of a real framework over a dataset of ours: tf.data's or torch's, as users write it, with a step that
sleeps. Called with a list of tasks as JSON; prints a line of JSON for each: the version, and what each epoch took."""
import json
import os
import sys
import time


def files_of(task):
    folder = os.path.join(task["data"], "train")
    return sorted(os.path.join(folder, n) for n in os.listdir(folder))


def tensorflow(task):
    os.environ.update(TF_CPP_MIN_LOG_LEVEL="3", CUDA_VISIBLE_DEVICES="-1", TF_ENABLE_ONEDNN_OPTS="0")
    import tensorflow as tf

    auto = tf.data.AUTOTUNE

    def number(x):
        return auto if x == "auto" else x

    def records(names):
        return tf.data.TFRecordDataset(names, buffer_size=task.get("buffer"))

    names = files_of(task)
    files = tf.data.Dataset.from_tensor_slices(names)
    ranks = task.get("ranks", 1)
    if ranks > 1:
        files = files.shard(ranks, task["rank"])
    if "interleave" in task:
        i = task["interleave"]
        data = files.interleave(records, cycle_length=number(i.get("cycle")), block_length=i.get("block", 1),
                                num_parallel_calls=number(i.get("calls")), deterministic=i.get("deterministic"))
    else:
        data = tf.data.TFRecordDataset(files, buffer_size=task.get("buffer"),
                                       num_parallel_reads=number(task.get("reads")))
    if task.get("shuffle"):
        data = data.shuffle(task["shuffle"], seed=task.get("seed"))
    data = data.batch(task["batch"], drop_remainder=True)
    if "map" in task:
        shape = {"image": tf.io.FixedLenFeature([], tf.string)}
        data = data.map(lambda x: tf.io.decode_raw(tf.io.parse_example(x, shape)["image"], tf.uint8),
                        num_parallel_calls=number(task["map"]))
    if task.get("prefetch") is not None:
        data = data.prefetch(number(task["prefetch"]))
    options = tf.data.Options()
    if task.get("threads"):
        options.threading.private_threadpool_size = task["threads"]
    return tf.__version__, data.with_options(options)


def torch(task):
    import numpy  # noqa: F401  in the workers, too
    import torch
    from torch.utils.data import BatchSampler, DataLoader, DistributedSampler, SequentialSampler

    names = files_of(task)
    if task["format"] in ("jpeg", "png"):
        import PIL.Image  # noqa: F401
    data = Listed(names, task["format"], task.get("transform"))
    if task.get("transform"):
        transforms(task["transform"])  # imported before there are workers
    workers, kind = task.get("workers", 0), task.get("sampler")
    more = dict(num_workers=workers, batch_size=task["batch"], drop_last=True)
    if workers:
        more.update(prefetch_factor=task.get("prefetch", 2), persistent_workers=task.get("persistent", False),
                    multiprocessing_context=task.get("context", "fork"))
        if "in_order" in task:
            more.update(in_order=task["in_order"])
    if kind == "random":
        torch.manual_seed(task["seed"])
        more.update(shuffle=True)
    elif kind == "distributed":
        more.update(sampler=DistributedSampler(data, task["ranks"], task["rank"], seed=task["seed"]))
    elif kind == "batch":
        for key in ("batch_size", "drop_last"):
            more.pop(key)
        more.update(batch_sampler=BatchSampler(SequentialSampler(data), task["batch"], True))
    elif kind == "iterable":
        data = stream_of(data)
    return torch.__version__, DataLoader(data, **more)


class Listed:
    """A map-style dataset of one file a sample."""

    def __init__(self, names, kind, transform):
        self.names, self.kind, self.transform = names, kind, transform

    def __len__(self):
        return len(self.names)

    def __getitem__(self, i):
        if self.kind == "npz":
            import numpy as np
            return np.load(self.names[i])["x"]
        if self.kind == "npy":
            import numpy as np
            return np.load(self.names[i])
        from PIL import Image
        image = Image.open(self.names[i])
        if self.transform:
            return transforms(self.transform)(image.convert("RGB"))
        import numpy as np
        return np.array(image)


def stream_of(data):
    """An iterable-style dataset whose workers take every n-th sample, as its documentation shows it."""
    from torch.utils.data import IterableDataset, get_worker_info

    class Stream(IterableDataset):
        def __iter__(self):
            me = get_worker_info()
            return (data[i] for i in range(me.id if me else 0, len(data), me.num_workers if me else 1))

    return Stream()


made = {}


def transforms(size):
    """As trainings on photographs have them."""
    if size not in made:
        from torchvision import transforms as t
        made[size] = t.Compose([t.RandomResizedCrop(size), t.RandomHorizontalFlip(), t.ToTensor(),
                                t.Normalize([0.485, 0.456, 0.406], [0.229, 0.224, 0.225])])
    return made[size]


def main(task):
    version, loader = (tensorflow if task["framework"] == "tensorflow" else torch)(task)
    epochs = []
    for epoch in range(task.get("epochs", 1)):
        if hasattr(loader, "sampler") and hasattr(loader.sampler, "set_epoch"):
            loader.sampler.set_epoch(epoch)
        begin, cpu = time.monotonic(), time.process_time()
        asked, waits, n = begin, [], 0
        for batch in loader:
            waits.append(time.monotonic() - asked)
            n += len(batch)
            if task.get("step"):
                time.sleep(task["step"])
            asked = time.monotonic()
        epochs.append(dict(wall=time.monotonic() - begin, waits=waits, samples=n, cpu=time.process_time() - cpu))
    print(json.dumps(dict(version=version, epochs=epochs)), flush=True)


def transform_s(task):
    """What the transforms of a sample take, as docs/howto.md measures it: in one thread, as in a worker, where there are
    any; after pauses, as in a loop."""
    import torch
    from PIL import Image
    if task["workers"]:
        torch.set_num_threads(1)
    transform, times = transforms(task["transform"]), []
    for i, name in enumerate(files_of(task)):
        if i % task["batch"] == 0:
            time.sleep(task["step"])
        image = Image.open(name)
        image.load()
        begin = time.perf_counter()
        transform(image.convert("RGB"))
        times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2]


if __name__ == "__main__":
    for each in json.loads(sys.argv[1]):
        main(each)
        if each.get("transform") and each.get("ask"):
            print(json.dumps(dict(transform_s=transform_s(each))), flush=True)
