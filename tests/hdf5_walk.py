"""Which bytes of an HDF5 file belong to which result: a slow, obvious walk along its pointers, by the public format.

It shares nothing with what it measures. It is written for the files of the corpus alone, and raises WalkError on
whatever they do not have. Addresses and lengths have 8 bytes; the file starts at its first byte.

Old format (h5py's default): superblock 0, object headers of version 1, groups as B-tree, symbol nodes and local heap.
New format (libver="latest"): superblock 3, object headers of version 2, links in the header or in a fractal heap.
"""

import struct
from dataclasses import dataclass, field

NOWHERE = 2**64 - 1

DATASPACE, LINK_INFO, DATATYPE, LINK, LAYOUT, ATTRIBUTE, CONTINUATION, SYMBOL_TABLE = 1, 2, 3, 6, 8, 12, 16, 17

Range = tuple[int, int]  # from a byte to before another


class WalkError(Exception):
    """The bytes are not what they would have to be."""


@dataclass
class Extent:
    """Where a result lies.

    own: what is its own: the headers of its group and of its datasets, what links the datasets to the group, and the
    numbers. Of B-trees, symbol nodes and heaps only what is in use. link: what names the group in its parent. text: its
    texts in heaps that it shares with others. layout, aep: where their numbers are, if they lie in one piece.
    """

    name: str
    attributes: dict = field(default_factory=dict)
    own: list[Range] = field(default_factory=list)
    link: list[Range] = field(default_factory=list)
    text: list[Range] = field(default_factory=list)
    headers: dict[str, int] = field(default_factory=dict)  # of the group (""), layout and aep
    layout: Range | None = None
    aep: Range | None = None


@dataclass
class Link:
    name: str
    address: int
    ranges: list[Range]


class Walk:
    """A file's bytes, and how to read what lies at an address."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    # --- bytes -------------------------------------------------------------------------------------------------------

    def number(self, at: int, size: int = 8) -> int:
        return int.from_bytes(self.piece(at, size), "little")

    def piece(self, at: int, size: int) -> bytes:
        if at < 0 or size < 0 or at + size > len(self.data):
            raise WalkError(f"{size} bytes at {at} are not in the file")
        return self.data[at : at + size]

    def expect(self, at: int, what: bytes) -> None:
        if self.piece(at, len(what)) != what:
            raise WalkError(f"{what!r} expected at {at}, found {self.piece(at, len(what))!r}")

    def text(self, at: int) -> tuple[str, Range]:
        end = self.data.find(b"\0", at)
        if end < 0:
            raise WalkError(f"no end of the text at {at}")
        return self.data[at:end].decode("ascii", "replace"), (at, end + 1)

    # --- the way down ------------------------------------------------------------------------------------------------

    def root(self) -> int:
        """The address of the root group's header."""
        self.expect(0, b"\x89HDF\r\n\x1a\n")
        version = self.number(8, 1)
        if version == 0:
            return self.number(64)  # the root's symbol table entry begins at 56
        if version == 3:
            return self.number(36)
        raise WalkError(f"superblock of version {version}")

    def results(self) -> dict[str, Extent]:
        """All of them by name, from the root, or from the folder in it."""
        links = {link.name: link for link in self.links(*self.header(self.root()))}
        if "optimized_layouts" in links:
            links = {link.name: link for link in self.links(*self.header(links["optimized_layouts"].address))}
        return {name: self.result(link.address, link) for name, link in links.items() if name != "init"}

    def result(self, address: int, link: Link | None = None) -> Extent:
        """The result whose group has its header at this address."""
        messages, ranges = self.header(address)
        extent = Extent(link.name if link else "", link=link.ranges if link else [], headers={"": address})
        extent.own += ranges
        for kind, at, size in messages:
            if kind == ATTRIBUTE:
                name, value, text = self.attribute(at, size)
                extent.attributes[name] = value
                extent.text += text
        for inner in self.links(messages, []):
            extent.own += inner.ranges
            extent.headers[inner.name] = inner.address
            inner_messages, inner_ranges = self.header(inner.address)
            extent.own += inner_ranges
            numbers, structure = self.numbers(inner_messages)
            extent.own += structure + numbers
            if inner.name in ("layout", "aep") and len(numbers) == 1:
                setattr(extent, inner.name, numbers[0])
        return extent

    def scan(self) -> list[Extent]:
        """Every group with a result that lies whole in the file, by its header alone, whether or not it is linked."""
        found = []
        for at in self.likely_headers():
            try:
                extent = self.result(at)
            except WalkError:
                continue
            if {"farm_idx", "type_idx", "ss_seed"} <= extent.attributes.keys() and extent.layout:
                found.append(extent)
        return found

    def likely_headers(self) -> list[int]:
        """Old ones start on 8-byte boundaries (version 1, 0, ..., one reference); new ones have a signature."""
        old = [at for at in range(0, len(self.data) - 16, 8) if self.data[at : at + 2] == b"\x01\0"]
        old = [at for at in old if self.data[at + 4 : at + 8] == b"\x01\0\0\0"]
        new, at = [], self.data.find(b"OHDR")
        while at >= 0:
            new.append(at)
            at = self.data.find(b"OHDR", at + 1)
        return old + new

    # --- object headers ----------------------------------------------------------------------------------------------

    def header(self, at: int) -> tuple[list[tuple[int, int, int]], list[Range]]:
        """Its messages (kind, address, size), and where it lies, continuations included."""
        if self.piece(at, 4) == b"OHDR":
            return self.new_header(at)
        if self.piece(at, 2) != b"\x01\0":
            raise WalkError(f"no object header at {at}")
        count, size = self.number(at + 2, 2), self.number(at + 8, 4)
        messages: list[tuple[int, int, int]] = []
        ranges = [(at, at + 16 + size)]
        blocks = [(at + 16, size)]
        while blocks:
            start, length = self.next_block(blocks, ranges)
            self.piece(start, length)
            place = start
            while place + 8 <= start + length and len(messages) < count:
                kind, inner = self.number(place, 2), self.number(place + 2, 2)
                if place + 8 + inner > start + length:
                    raise WalkError(f"the message at {place} is longer than its header")
                messages.append((kind, place + 8, inner))
                if kind == CONTINUATION:
                    block = self.number(place + 8), self.number(place + 16)
                    blocks.append(block)
                    ranges.append((block[0], sum(block)))
                place += 8 + inner
        if len(messages) != count:
            raise WalkError(f"the header at {at} has {len(messages)} messages instead of {count}")
        return messages, ranges

    def new_header(self, at: int) -> tuple[list[tuple[int, int, int]], list[Range]]:
        if self.number(at + 4, 1) != 2:
            raise WalkError(f"object header of an unknown version at {at}")
        flags = self.number(at + 5, 1)
        width = 1 << (flags & 3)
        place = at + 6 + (16 if flags & 0x20 else 0) + (4 if flags & 0x10 else 0)
        start, length = place + width, self.number(place, width)
        prefix = 6 if flags & 4 else 4  # of a message, with or without its number
        messages: list[tuple[int, int, int]] = []
        ranges = [(at, start + length + 4)]
        blocks = [(start, length)]
        while blocks:
            start, length = self.next_block(blocks, ranges)
            self.piece(start, length + 4)
            place = start
            while place + prefix <= start + length:
                kind, inner = self.number(place, 1), self.number(place + 1, 2)
                if place + prefix + inner > start + length:
                    raise WalkError(f"the message at {place} is longer than its header")
                messages.append((kind, place + prefix, inner))
                if kind == CONTINUATION:
                    address, whole = self.number(place + prefix), self.number(place + prefix + 8)
                    self.expect(address, b"OCHK")
                    blocks.append((address + 4, whole - 8))
                    ranges.append((address, address + whole))
                place += prefix + inner
        return messages, ranges

    def next_block(self, blocks: list[Range], ranges: list[Range]) -> Range:
        if len(ranges) > 50:
            raise WalkError(f"the header at {ranges[0][0]} has no end")
        return blocks.pop(0)

    # --- links -------------------------------------------------------------------------------------------------------

    def links(self, messages: list[tuple[int, int, int]], _ranges: list[Range]) -> list[Link]:
        """What a group links to, each with the bytes that do so."""
        found: list[Link] = []
        for kind, at, size in messages:
            if kind == SYMBOL_TABLE:
                found += self.symbols(self.number(at), self.number(at + 8))
            elif kind == LINK:
                found.append(self.link(at, size))
            elif kind == LINK_INFO:
                place = at + 2 + (8 if self.number(at + 1, 1) & 1 else 0)
                heap, tree = self.number(place), self.number(place + 8)
                if heap != NOWHERE:
                    found += FractalHeap(self, heap).links(tree)
        return found

    def link(self, at: int, size: int) -> Link:
        """A link message, in a header or in a heap."""
        flags = self.number(at + 1, 1)
        if self.number(at, 1) != 1 or (flags & 8 and self.number(at + 2, 1) != 0):
            raise WalkError(f"the link at {at} is not of the kind that is expected")
        place = at + 2 + (1 if flags & 8 else 0) + (8 if flags & 4 else 0) + (1 if flags & 16 else 0)
        width = 1 << (flags & 3)
        length = self.number(place, width)
        name = self.piece(place + width, length).decode("ascii", "replace")
        end = place + width + length + 8
        return Link(name, self.number(end - 8), [(at, end)])

    def symbols(self, tree: int, heap: int) -> list[Link]:
        """The entries of an old group: tree, symbol nodes, and names in the heap."""
        self.expect(heap, b"HEAP")
        names = self.number(heap + 24)
        found = []
        for node, path in self.tree_children(tree, 0, 8):
            self.expect(node, b"SNOD")
            for i in range(self.number(node + 6, 2)):
                entry = node + 8 + 40 * i
                name, where = self.text(names + self.number(entry))
                ranges = [*path, (heap, heap + 32), (node, node + 8), (entry, entry + 40), where]
                found.append(Link(name, self.number(entry + 8), ranges))
        return found

    def tree_children(self, at: int, kind: int, key: int) -> list[tuple[int, list[Range]]]:
        """What a B-tree of version 1 ends in, each with the nodes on the way; `key`: bytes that a key has."""
        self.expect(at, b"TREE")
        if self.number(at + 4, 1) != kind:
            raise WalkError(f"the tree at {at} is of another kind")
        level, used = self.number(at + 5, 1), self.number(at + 6, 2)
        own = (at, at + 24 + used * (key + 8) + key)
        self.piece(own[0], own[1] - own[0])
        children = [self.number(at + 24 + key + i * (key + 8)) for i in range(used)]
        if level == 0:
            return [(child, [own]) for child in children]
        if level > 8 or any(self.number(child + 5, 1) != level - 1 for child in children):
            raise WalkError(f"the tree at {at} has levels that do not follow each other")
        deeper = [below for child in children for below in self.tree_children(child, kind, key)]
        return [(child, [own, *path]) for child, path in deeper]

    # --- attributes and numbers --------------------------------------------------------------------------------------

    def attribute(self, at: int, size: int) -> tuple[str, object, list[Range]]:
        """Its name, its value, and where its text lies if it is one."""
        version = self.number(at, 1)
        lengths = [self.number(at + 2 + 2 * i, 2) for i in range(3)]  # of name, type and shape
        if version == 1:
            start, lengths = at + 8, [-(-length // 8) * 8 for length in lengths]
        elif version == 3:
            start = at + 9
        else:
            raise WalkError(f"attribute of version {version} at {at}")
        name, _ = self.text(start)
        kind = start + lengths[0]
        value = start + sum(lengths)
        width = self.number(kind + 4, 4)
        sort = self.number(kind, 1) & 15
        if value + width > at + size:
            raise WalkError(f"the attribute at {at} is longer than its message")
        if sort == 0:
            return name, self.number(value, width), []
        if sort == 1 and width == 8:
            return name, struct.unpack("<d", self.piece(value, 8))[0], []
        if sort == 9:
            return name, *self.shared_text(self.number(value, 4), self.number(value + 4), self.number(value + 12, 4))
        raise WalkError(f"attribute of class {sort} at {at}")

    def shared_text(self, length: int, heap: int, index: int) -> tuple[str, list[Range]]:
        """A text in a global heap: the heap's first bytes, and those of the text; "" where the heap is not whole."""
        try:
            self.expect(heap, b"GCOL")
            end = heap + self.number(heap + 8)
            place = heap + 16
            while place + 16 <= end and self.number(place, 2) != 0:
                size = self.number(place + 8)
                if self.number(place, 2) == index:
                    ranges = [(heap, heap + 16), (place, place + 16 + length)]
                    return self.piece(place + 16, length).decode("utf-8", "replace"), ranges
                place += 16 + -(-size // 8) * 8
        except WalkError:
            pass
        return "", []

    def numbers(self, messages: list[tuple[int, int, int]]) -> tuple[list[Range], list[Range]]:
        """Where a dataset's numbers lie, and the index of its chunks if it has one."""
        rank = max([self.number(at + 1, 1) for kind, at, _ in messages if kind == DATASPACE], default=0)
        for kind, at, _ in messages:
            if kind != LAYOUT:
                continue
            version, form = self.number(at, 1), self.number(at + 1, 1)
            if version in (3, 4, 5) and form == 1:
                return [self.inside(self.number(at + 2), self.number(at + 10))], []
            if version == 3 and form == 2:
                return self.old_chunks(self.number(at + 3), 8 + 8 * (rank + 1))
            if version in (4, 5) and form == 2:
                return self.new_chunks(at)
            raise WalkError(f"data layout of version {version} and form {form} at {at}")
        raise WalkError("a dataset without a data layout")

    def inside(self, start: int, size: int) -> Range:
        self.piece(start, size)
        return start, start + size

    def old_chunks(self, tree: int, key: int) -> tuple[list[Range], list[Range]]:
        numbers, structure = [], []
        for chunk, path in self.tree_children(tree, 1, key):
            node = path[-1][0]
            used = self.number(node + 6, 2)
            keys = [node + 24 + i * (key + 8) for i in range(used)]
            size = next(self.number(place, 4) for place in keys if self.number(place + key) == chunk)
            numbers.append(self.inside(chunk, size))
            structure += [piece for piece in path if piece not in structure]
        return numbers, structure

    def new_chunks(self, at: int) -> tuple[list[Range], list[Range]]:
        """Versions 4 and 5: a single chunk, or a fixed array of them in one block: all that a small layout needs."""
        flags, rank, width = self.number(at + 2, 1), self.number(at + 3, 1), self.number(at + 4, 1)
        sizes = [self.number(at + 5 + i * width, width) for i in range(rank)]
        place = at + 5 + rank * width
        whole = 1
        for size in sizes:
            whole *= size  # the last is the size of a number
        index = self.number(place, 1)
        if index == 1:
            size = self.number(place + 1) if flags & 2 else whole
            address = self.number(place + 1 + (12 if flags & 2 else 0))
            return [self.inside(address, size)], []
        if index != 3:
            raise WalkError(f"chunk index of kind {index} at {at}")
        head = self.number(place + 2)
        self.expect(head, b"FAHD")
        entry, count, block = self.number(head + 6, 1), self.number(head + 8), self.number(head + 16)
        self.expect(block, b"FADB")
        if count > 1 << self.number(head + 7, 1):
            raise WalkError(f"the array of chunks at {head} has pages")
        numbers = []
        for i in range(count):
            place = block + 14 + i * entry
            size = self.number(place + 8, entry - 12) if self.number(block + 5, 1) == 1 else whole
            numbers.append(self.inside(self.number(place), size))
        return numbers, [(head, head + 28), (block, block + 14 + count * entry + 4)]


class FractalHeap:
    """Where a new group keeps its links once they are more than eight; without filters, without huge ones."""

    def __init__(self, walk: Walk, at: int) -> None:
        walk.expect(at, b"FRHP")
        self.walk = walk
        self.has_checksums = bool(walk.number(at + 9, 1) & 2)
        place = at + 14 + 12 * 8
        self.width = walk.number(place, 2)
        self.first = walk.number(place + 2)
        self.most_direct = walk.number(place + 10)
        self.offset_size = -(-walk.number(place + 18, 2) // 8)
        self.root = walk.number(place + 22)
        self.rows = walk.number(place + 30, 2)
        largest = min(self.most_direct, walk.number(at + 10, 4))
        self.length_size = -(-largest.bit_length() // 8)
        self.header = (at, place + 32 + 4)

    def links(self, tree: int) -> list[Link]:
        """Those that a B-tree of version 2 points to."""
        walk = self.walk
        walk.expect(tree, b"BTHD")
        if walk.number(tree + 5, 1) != 5 or walk.number(tree + 12, 2) not in (0, 1):
            raise WalkError(f"the tree at {tree} is of another kind, or too deep")
        found = []
        for record, path in self.records(tree):
            flags = walk.number(record + 4, 1)
            if flags & 0x30:
                raise WalkError(f"the record at {record} is of another kind")
            offset = walk.number(record + 5, self.offset_size)
            size = walk.number(record + 5 + self.offset_size, self.length_size)
            at, blocks = self.locate(offset)
            link = walk.link(at, size)
            found.append(Link(link.name, link.address, [self.header, *path, *blocks, *link.ranges]))
        return found

    def records(self, tree: int) -> list[tuple[int, list[Range]]]:
        """Of all nodes; what stands in the tree's head says how many each child has."""
        walk = self.walk
        size, depth = walk.number(tree + 10, 2), walk.number(tree + 12, 2)
        root, count = walk.number(tree + 16), walk.number(tree + 24, 2)
        node_size = walk.number(tree + 6, 4)
        head = (tree, tree + 38)
        if depth == 0:
            return self.leaf(root, count, size, [head])
        walk.expect(root, b"BTIN")
        inner = [(root + 6 + i * size, [head, (root, root + 6 + (i + 1) * size)]) for i in range(count)]
        most = (node_size - 10) // size
        count_size = -(-most.bit_length() // 8)
        for i in range(count + 1):
            place = root + 6 + count * size + i * (8 + count_size)
            path = [head, (root, root + 6), (place, place + 8 + count_size)]
            inner += self.leaf(walk.number(place), walk.number(place + 8, count_size), size, path)
        return inner

    def leaf(self, at: int, count: int, size: int, path: list[Range]) -> list[tuple[int, list[Range]]]:
        self.walk.expect(at, b"BTLF")
        return [
            (place, [*path, (at, at + 6), (place, place + size)])
            for place in range(at + 6, at + 6 + count * size, size)
        ]

    def locate(self, offset: int) -> tuple[int, list[Range]]:
        """The address of what has this offset in the heap, and what says so."""
        if self.rows == 0:
            return self.root + offset, []
        self.walk.expect(self.root, b"FHIB")
        entries = self.root + 5 + 8 + self.offset_size
        start = 0
        for i in range(self.rows * self.width):
            row = i // self.width
            size = self.first << max(row - 1, 0)
            if size > self.most_direct:
                raise WalkError("the heap has blocks of blocks")
            if offset < start + size:
                entry = entries + 8 * i
                block = self.walk.number(entry)
                self.walk.expect(block, b"FHDB")
                return block + offset - start, [(self.root, entries), (entry, entry + 8)]
            start += size
        raise WalkError(f"nothing has the offset {offset} in the heap")
