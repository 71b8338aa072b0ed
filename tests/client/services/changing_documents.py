"""Documents of a few sections, and what people do to them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hypothesis import strategies as st

TOPICS = ("kumquat", "giraffe", "harbour", "lantern", "数据库", "pebble")
HEADINGS = ("Alpha", "Beta", "Alpha!", "发布", "")


@dataclass(frozen=True)
class Section:
    """A section of a document; 6 words are joined with short neighbours, 420 are cut in parts."""

    heading: str
    level: int
    topic: str
    size: int
    version: int

    def text(self) -> str:
        words = " ".join(f"{self.topic} w{n % 23}v{self.version}" for n in range(self.size // 2))
        return f"{'#' * self.level} {self.heading}\n\n{words}\n" if self.heading else f"{words}\n"


SECTIONS = st.builds(
    Section,
    st.sampled_from(HEADINGS),
    st.integers(1, 3),
    st.sampled_from(TOPICS),
    st.sampled_from((6, 6, 90, 420)),
    st.integers(0, 2),
)
DOCUMENTS = st.lists(SECTIONS, min_size=1, max_size=4).map(tuple)
# "describe" changes the description alone, and so none of the sections.
CHANGES = st.sampled_from(("edit", "retitle", "move", "nest", "drop", "repeat", "describe"))


def changed(document: tuple[Section, ...], change: str, place: int, other: Section) -> tuple[Section, ...]:
    """Return the document after one edit at a section."""
    sections, place = list(document), place % len(document)
    here = sections[place]
    if change == "edit":
        sections[place] = replace(here, version=here.version + 1)
    elif change == "retitle":
        sections[place] = replace(here, heading=other.heading)
    elif change == "nest":
        sections[place] = replace(here, level=here.level % 3 + 1)
    elif change == "move":
        sections.append(sections.pop(place))
    elif change == "drop" and len(sections) > 1:
        del sections[place]
    else:
        sections.insert(place, other)
    return tuple(sections)


def body_of(document: tuple[Section, ...]) -> str:
    return "\n".join(section.text() for section in document)
