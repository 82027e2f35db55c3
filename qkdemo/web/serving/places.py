"""Who may hold how many connections that stay open.

* `Places(most, ...)`: `take(visitor, address)`: a place, or None if there is none for them;
* `Place.leave()`: gives it back.

One client cannot take what others need: each visitor has some, an address half of all (a hall stands behind one), and
clients without a name that this server gave share a few for each address. This machine itself has no address.
"""

from collections import Counter
from dataclasses import dataclass
from typing import Final

MOST: Final = 500
OF_ADDRESS: Final = 250
OF_VISITOR: Final = 12  # windows of one browser
NAMELESS: Final = 30  # of one address


@dataclass(eq=False)
class Place:
    """One connection's; give it back once."""

    _places: "Places"
    _keys: tuple[str, ...]

    def leave(self) -> None:
        """Nobody holds it any more."""
        self._places.free(self._keys)
        self._keys = ()


class Places:
    """Used by one thread, the server's event loop."""

    def __init__(
        self, most: int = MOST, of_address: int = OF_ADDRESS, of_visitor: int = OF_VISITOR, nameless: int = NAMELESS
    ) -> None:
        self._most, self._of_address, self._of_visitor, self._nameless = most, of_address, of_visitor, nameless
        self._held: Counter[str] = Counter()

    def take(self, visitor: str, address: str) -> Place | None:
        """A place for a visitor of that name (empty: none) at that address of `serving.networks` (empty: here)."""
        limits = {"all": self._most}
        if address:
            limits[f"address {address}"] = self._of_address
        if visitor:
            limits[f"visitor {visitor}"] = self._of_visitor
        elif address:
            limits[f"nameless {address}"] = self._nameless
        if any(self._held[key] >= limit for key, limit in limits.items()):
            return None
        self._held.update(limits.keys())
        return Place(self, tuple(limits))

    def free(self, keys: tuple[str, ...]) -> None:
        """What `take` took; call `Place.leave`."""
        self._held.subtract(keys)
        self._held = +self._held  # who has left is not remembered
