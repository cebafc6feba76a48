"""Which values do tests use that no JSON holds and that fight back?"""

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from pydantic import BaseModel, ConfigDict, PrivateAttr


def _refuse(*_: Any, **__: Any) -> Any:
    raise RuntimeError("hostile")


class HostileText(str):  # noqa: SLOT000
    __hash__ = str.__hash__
    __eq__ = __str__ = __repr__ = __len__ = __iter__ = encode = isascii = _refuse


class HostileDict(dict):
    __eq__ = __hash__ = __repr__ = __len__ = __iter__ = __getitem__ = items = values = _refuse
    keys = get = __bool__ = _refuse


class HostileList(list):
    __eq__ = __hash__ = __repr__ = __len__ = __iter__ = __getitem__ = __bool__ = _refuse


class HostileSet(set):
    __eq__ = __repr__ = __len__ = __iter__ = __bool__ = _refuse


class HostileInt(int):
    __eq__ = __hash__ = __repr__ = __str__ = __int__ = __index__ = __float__ = _refuse
    __bool__ = __lt__ = __le__ = __gt__ = __ge__ = __format__ = _refuse


class HostileFloat(float):
    __eq__ = __hash__ = __repr__ = __str__ = __float__ = __bool__ = __pos__ = _refuse
    __lt__ = __gt__ = _refuse


class HostileBytes(bytes):
    __eq__ = __hash__ = __repr__ = __len__ = __iter__ = __bytes__ = hex = _refuse


class HostileMapping(Mapping):
    __getitem__ = __len__ = __iter__ = get = items = __reduce_ex__ = _refuse


class HostileObject:
    __eq__ = __hash__ = __repr__ = __str__ = __len__ = __iter__ = __bool__ = _refuse
    __getattr__ = __getattribute__ = __reduce_ex__ = __dir__ = __format__ = _refuse


class LiesAboutItsClass:
    __class__ = property(_refuse)
    __reduce_ex__ = _refuse


class _Meta(type):
    __getattribute__ = _refuse
    __instancecheck__ = __subclasscheck__ = __hash__ = __eq__ = _refuse


class HostileType(metaclass=_Meta):
    __reduce_ex__ = _refuse


class ForeverNew:
    """Describes itself by a new object of its kind, without end."""

    def __reduce_ex__(self, protocol: Any) -> Any:
        return ForeverNew, (ForeverNew(),)


class Colour(enum.Enum):
    RED = 1
    BLUE = 2


class Level(enum.IntEnum):
    LOW = 1


class Word(str, enum.Enum):  # noqa: UP042 - the older spelling is what is in use
    A = "a"


@dataclass
class Point:
    x: int
    seen: int = field(default=0, compare=False)


@dataclass(slots=True)
class Slotted:
    x: int


class Plain:
    def __init__(self, **state: Any) -> None:
        self.__dict__.update(state)


class Slots:
    __slots__ = ("a", "b")


class Model(BaseModel):
    model_config = ConfigDict(extra="allow")

    a: int = 1
    _token: object = PrivateAttr(default_factory=object)


# Made when asked for: pytest asks a parameter for its class, its name and more.
HOSTILE = {
    "object": HostileObject,
    "class": LiesAboutItsClass,
    "type": lambda: HostileType(),  # noqa: PLW0108 - pytest would look at the class
    "mapping": HostileMapping,
}
