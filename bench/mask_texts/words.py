import re
from collections import Counter


def most_common(path, n=10):
    """The words of a file that come most often."""
    counts = Counter()
    with open(path, encoding="utf-8") as lines:
        for line in lines:
            counts.update(re.findall(r"\w+", line.lower()))
    return counts.most_common(n)


if __name__ == "__main__":
    for word, count in most_common("notes.txt"):
        print(f"{count:6d}  {word}")
