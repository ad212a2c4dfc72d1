"""measures.bin as src/codec/columns.h describes it, taken apart and put together again."""

STAMPS = ("begin_wall_ns", "end_wall_ns", "train_end_wall_ns")
MASK = (1 << 64) - 1


def varint(v):
    out = bytearray()
    while v >= 128:
        out.append(v & 127 | 128)
        v >>= 7
    out.append(v)
    return bytes(out)


class Reader:
    def __init__(self, data, at=0):
        self.data, self.at = data, at

    def varint(self):
        v = shift = 0
        while True:
            c = self.data[self.at]
            self.at += 1
            v |= (c & 127) << shift
            shift += 7
            if c < 128:
                return v & MASK

    def take(self, n):
        self.at += n
        return self.data[self.at - n:self.at]

    def text(self):
        return self.take(self.varint())


def integers(r, count):
    """A column of integers that are no arrays."""
    out, before = [], 0
    while len(out) < count:
        z = r.varint()
        before = (before + (z >> 1 ^ -(z & 1))) & MASK
        out.append(before)
        if z == 0:
            out += [before] * r.varint()
    return out


def skip(r, kind, elements, count):
    """A column of another kind."""
    values, done = count * elements, 0
    while done < values:
        if kind == "c":
            r.text()
            done += 1
        elif kind == "d":
            if r.take(1) == b"\1":
                r.take(8)
                done += 1
            else:
                done += 1 + r.varint()
        elif r.varint() == 0:
            done += 1 + r.varint()
        else:
            done += 1


def put_integers(values):
    out, before, i = bytearray(), 0, 0
    while i < len(values):
        step = (values[i] - before) & MASK
        before = values[i]
        i += 1
        if step:
            signed = step - (1 << 64) if step >> 63 else step
            out += varint((signed << 1 ^ signed >> 63) & MASK)
            continue
        same = 0
        while i < len(values) and values[i] == before:
            same, i = same + 1, i + 1
        out += b"\0" + varint(same)
    return bytes(out)


def edited(data, chunk, member, change):
    """The file with one column of integers that are no arrays changed: its values become change(values)."""
    r, out, done = Reader(data, data.index(b"\n") + 1), bytearray(data[:data.index(b"\n") + 1]), False
    while r.at < len(data):
        begin = r.at
        name = r.text().decode()
        members = [(r.text().decode(), r.take(1).decode(), r.varint()) for _ in range(r.varint())]
        count = r.varint()
        head = data[begin:r.at]
        length = int.from_bytes(r.take(8), "little")
        at, end, body = r.at, r.at + length, bytearray()
        for column, kind, elements in members if name == chunk else ():
            before = r.at
            if column == member:
                body += put_integers(change(integers(r, count)))
                done = True
            else:
                skip(r, kind, elements, count)
                body += data[before:r.at]
            at = r.at
        body += data[at:end]
        out += head + len(body).to_bytes(8, "little") + body
        r.at = end
    assert done, (chunk, member)
    return bytes(out)


class Measures:
    """Parts that stay as they are, and the columns of moments of the wall clock between them."""

    def __init__(self, data):
        r = Reader(data, data.index(b"\n") + 1)
        self.parts, begin = [], 0
        while r.at < len(data):
            r.text()
            members = []
            for _ in range(r.varint()):
                members.append((r.text().decode(), r.take(1).decode(), r.varint()))
            count = r.varint()
            length = int.from_bytes(r.take(8), "little")
            self.parts += [data[begin:r.at - 8], ("length", length)]
            begin, end = r.at, r.at + length
            for name, kind, elements in members:
                at = r.at
                if name in STAMPS:
                    values = integers(r, count)
                    self.parts += [data[begin:at], ("stamps", values)]
                    begin = r.at
                else:
                    skip(r, kind, elements, count)
            assert r.at == end or not members
            r.at = end
            self.parts += [data[begin:end], ("end", None)]
            begin = end

    def later(self, seconds, old_id, new_id):
        """The file of a run that began so many seconds later, and has another number."""
        out, length_at = bytearray(), 0
        for part in self.parts:
            if isinstance(part, bytes):
                out += part
            elif part[0] == "length":
                length_at = len(out)
                out += bytes(8)
            elif part[0] == "stamps":
                out += put_integers([v + seconds * 10**9 if v else 0 for v in part[1]])
            else:
                out[length_at:length_at + 8] = (len(out) - length_at - 8).to_bytes(8, "little")
        return bytes(out).replace(old_id.encode(), new_id.encode())
