"""Files of run folders without their checksums, as earlier versions wrote them."""

import json
import re
from pathlib import Path

from emea.record.checked_files import ARCHIVE_COMMENT, COMMENT, KEY


def unsigned(path: Path) -> bytes:
    """The content of a file without its checksum."""
    content = path.read_bytes()
    if path.suffix == ".yaml":
        return COMMENT.sub(b"", content, count=1)
    if path.suffix == ".npz":
        return re.sub(ARCHIVE_COMMENT + rb"\w{64}\Z", b" " * 72, content)
    if path.suffix != ".json":
        return content
    values = {key: value for key, value in json.loads(content).items() if key != KEY}
    return (json.dumps(values, indent=2, ensure_ascii=False) + "\n").encode()


def replace_in(path: Path, old: str, new: str) -> None:
    """Change a file as a user would: the checksum is removed, too."""
    text = unsigned(path).decode()
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
