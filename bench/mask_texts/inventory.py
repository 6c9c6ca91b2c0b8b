"""What is in stock."""

from dataclasses import dataclass, field


@dataclass
class Inventory:
    items: dict[str, int] = field(default_factory=dict)

    def add(self, name: str, count: int = 1) -> None:
        if count < 1:
            raise ValueError(f"Nothing to add: {count}.")
        self.items[name] = self.items.get(name, 0) + count

    def scarce(self, limit: int) -> list[str]:
        return sorted(name for name, count in self.items.items() if count < limit)
