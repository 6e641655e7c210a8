"""Types of arguments, for annotations."""
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol, Union

if TYPE_CHECKING:
    from typing_extensions import Buffer


class SupportsDLPack(Protocol):
    """An array or tensor that hands out its memory by DLPack."""

    def __dlpack__(self, *, stream: Any = None) -> Any: ...
    def __dlpack_device__(self) -> "tuple[int, int]": ...


Array = Union["Buffer", SupportsDLPack]
Integers = Union[int, Sequence[int], Array]
IntegerArray = Union[Sequence[int], Array]
