"""A small stock-keeping module: something to complete in."""

from collections import defaultdict
from dataclasses import dataclass


@dataclass
class Item:
    name: str
    price: float
    quantity: int


class Inventory:
    def __init__(self):
        self.items: dict[str, Item] = {}

    def add(self, item: Item) -> None:
        """Add an item, or raise its quantity when it is there already."""
        if item.name in self.items:
            
        else:
            self.items[item.name] = item

    def total_value(self) -> float:
        """What all items together are worth."""
        return sum(item.price * 

    def cheapest(self, count: int) -> list[Item]:
        """The `count` items with the lowest price, the cheapest first."""
        

    def by_first_letter(self) -> dict[str, list[Item]]:
        groups = defaultdict(list)
        for item in self.items.values():
            
        return dict(groups)
