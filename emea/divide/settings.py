"""Settings of a part of a divided pair."""

from dataclasses import dataclass

from emea.setting import setting, up_to


@dataclass(frozen=True)
class PartSettings:
    """A part of a pair that ``emea divide`` cut (docs/large.md)."""

    division: str | None = setting(
        None, "folder that emea divide wrote", example="division"
    )
    part: int = setting(0, "number of the part, from 0", up_to(1_000_000, least=0))
