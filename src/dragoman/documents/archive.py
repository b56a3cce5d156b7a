"""Documents that are zip archives: some members contain text, all others are unchanged.

A changed member is packed again; the bytes of all others, the order, names, dates, extra fields and
comments are copied, so that a format's rules for its archive (EPUB's first member) still hold.
"""

import io
import struct
import zipfile
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice, pairwise

from dragoman.documents.document import Document, WrittenPart
from dragoman.documents.paragraphs import decode_xml
from dragoman.errors import InputError
from dragoman.files.xml import Element, find_elements

MOST_MEMBERS = 20_000
"""Maximum number of members in an archive."""
LARGEST_TEXT = 3 << 24
"""Maximum total size of the members that are read, in bytes, unpacked."""
HIGHEST_RATIO = 250
"""Maximum ratio of a member's bytes to its packed bytes in the archive."""
LONGEST_NAME = 500
"""Maximum characters in a member's name, which names the place of each text in it."""
SMALL = 1 << 20
"""Size in bytes up to which a member may have any ratio."""

# signature, version, flags, method, time, date, CRC, packed size, size, lengths of name and extra
_LOCAL = struct.Struct("<4s5H3L2H")
# the same with one more version, then length of comment, disk, two attributes, offset of the former
_CENTRAL = struct.Struct("<4s6H3L5H2L")
_END = struct.Struct("<4s4H2LH")
_ENCRYPTED, _SIZES_FOLLOW, _DEFLATED, _ZIP64 = 1, 8, 8, 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Archive:
    """A zip archive in memory."""

    data: bytes
    name: str
    file: zipfile.ZipFile

    @classmethod
    def open(cls, data: bytes, name: str) -> "Archive":
        """Open an archive. Raises InputError if it is not one, or could not be written again."""
        if data.startswith(b"\xd0\xcf\x11\xe0"):
            raise InputError(
                f"{name} has a password or is of an old format; save it without one as docx, pptx "
                "or xlsx."
            )
        try:
            file = zipfile.ZipFile(io.BytesIO(data))
            archive = cls(data, name, file)
            fault = archive._fault()
        except (
            zipfile.BadZipFile,
            struct.error,
            NotImplementedError,
            OverflowError,
            ValueError,
        ) as error:
            raise InputError(
                f"{name} is damaged, or no document: {error}; save the document anew."
            ) from error
        if fault:
            raise InputError(f"{name} {fault}.")
        return archive

    def _fault(self) -> str:
        """Return why the archive cannot be read; "" if it can."""
        infos, names = self.file.infolist(), self.members
        if len(infos) > MOST_MEMBERS:
            return f"has {len(infos):,} members; at most {MOST_MEMBERS:,} are read"
        if len(set(names)) < len(names):
            return "has two members of one name; save it anew"
        if any(info.flag_bits & _ENCRYPTED for info in infos):
            return "is encrypted; save it without a password"
        if any(name.startswith("/") or ".." in name.split("/") for name in names):
            return "has a member whose name leads out of it"
        if any(len(name) > LONGEST_NAME for name in names):
            return f"has a member with a name of more than {LONGEST_NAME} characters; save it anew"
        place = self.file.start_dir
        for _ in infos:
            place += _CENTRAL.size + sum(_CENTRAL.unpack_from(self.data, place)[10:13])
        whole = place == self._end and _END.unpack_from(self.data, place)[-2] != _ZIP64
        for info, (begin, end) in self._records():
            *_, name, extra = _LOCAL.unpack_from(self.data, begin)
            whole &= begin + _LOCAL.size + name + extra + info.compress_size <= end
        return "" if whole else "is damaged, or larger than a document is; save it anew"

    @property
    def _end(self) -> int:
        """The offset of the archive's last record."""
        return len(self.data) - _END.size - len(self.file.comment)

    def _records(self) -> list[tuple[zipfile.ZipInfo, tuple[int, int]]]:
        """Return the members in the order of their bytes, with start and end offsets."""
        infos = sorted(self.file.infolist(), key=lambda info: info.header_offset)
        places = [*(info.header_offset for info in infos), self.file.start_dir]
        return list(zip(infos, pairwise(places), strict=True))

    @property
    def members(self) -> list[str]:
        """The names of the members, in order."""
        return self.file.namelist()

    def read(self, *members: str) -> dict[str, bytes]:
        """Return the contents of members. Raises InputError if they are damaged or too large."""
        found, left = dict[str, bytes](), LARGEST_TEXT
        for member in members:
            place = f"{self.name}: {member}"
            try:
                info = self.file.getinfo(member)
                left -= info.file_size
                if info.file_size > max(SMALL, HIGHEST_RATIO * info.compress_size) or left < 0:
                    raise InputError(f"{place} is larger, unpacked, than a document's text is.")
                if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                    raise InputError(f"{place} is packed as no document is; save it anew.")
                found[member] = self.file.read(info)
            except KeyError:
                raise InputError(f"{place} is missing; save the document anew.") from None
            except (zipfile.BadZipFile, zlib.error, EOFError, OSError, ValueError) as error:
                raise InputError(f"{place} is damaged: {error}; save the document anew.") from error
            except (NotImplementedError, RuntimeError) as error:
                raise InputError(f"{place} cannot be unpacked: {error}; save it anew.") from error
        return found

    def elements(self, member: str, *names: str) -> Iterator[Element]:
        """Return the elements with these local names in an XML member."""
        place = f"{self.name}: {member}"
        return find_elements(decode_xml(self.read(member)[member], place)[0], names, place)

    def document(self, members: Mapping[str, Document], left: Sequence[str] = ()) -> Document:
        """Return the document whose text is in these members."""

        def assemble(parts: Sequence[WrittenPart]) -> bytes:
            rest, changed = iter(parts), dict[str, bytes]()
            for member, inner in members.items():
                new = [*islice(rest, len(inner.parts))]
                if any(each.is_changed for each in new):
                    changed[member] = inner.assemble(new)
            return self.replaced(changed) if changed else self.data

        parts = tuple(part for inner in members.values() for part in inner.parts)
        inner_left = (line for inner in members.values() for line in inner.left)
        return Document(parts, assemble, (*left, *dict.fromkeys(inner_left)))

    def replaced(self, changed: Mapping[str, bytes]) -> bytes:
        """Return the archive with new content for some members."""
        data, records = self.data, self._records()
        new = bytearray(data[: records[0][1][0]])
        offsets, sizes = dict[str, int](), dict[str, tuple[int, int, int]]()
        for info, (start, end) in records:
            name = info.filename
            offsets[name] = len(new)
            if name in changed:
                method = _method(info.compress_type)  # its own record may name another
                record, sizes[name] = self._packed(start, changed[name], method)
                new += record
            else:
                new += data[start:end]
        directory, place = len(new), self.file.start_dir
        for info in self.file.infolist():
            fields = [*_CENTRAL.unpack_from(data, place)]
            end = place + _CENTRAL.size + sum(fields[10:13])
            fields[-1] += offsets[info.filename] - info.header_offset
            if info.filename in changed:
                fields[3] &= ~_SIZES_FOLLOW
                fields[4] = _method(fields[4])
                fields[7:10] = sizes[info.filename]
            new += _CENTRAL.pack(*fields) + data[place + _CENTRAL.size : end]
            place = end
        last = [*_END.unpack_from(data, self._end)]
        last[-2] += directory - self.file.start_dir
        return bytes(new) + _END.pack(*last) + self.file.comment

    def _packed(
        self, start: int, content: bytes, method: int
    ) -> tuple[bytes, tuple[int, int, int]]:
        """Return the record of a member with new content, and its CRC and sizes."""
        fields = [*_LOCAL.unpack_from(self.data, start)]
        fields[2] &= ~_SIZES_FOLLOW
        fields[3] = method
        packed = content
        if method:
            deflate = zlib.compressobj(wbits=-zlib.MAX_WBITS)
            packed = deflate.compress(content) + deflate.flush()
        sizes = zlib.crc32(content), len(packed), len(content)
        fields[6:9] = sizes
        end = start + _LOCAL.size + sum(fields[9:11])
        return _LOCAL.pack(*fields) + self.data[start + _LOCAL.size : end] + packed, sizes


def _method(old: int) -> int:
    """Return how to pack a member again: not at all if it was not packed."""
    return _DEFLATED if old else 0
