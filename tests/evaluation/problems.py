"""A small problem with tests of its own."""

from treefill.evaluation.holes import Problem

ADD = Problem(
    task="Small/0",
    prompt='def total(numbers):\n    """Sum of the even numbers."""\n',
    solution=(
        "    result = 0\n"
        "    for number in numbers:\n"
        "\n"
        "        if number % 2 == 0:\n"
        "            result += int(number)\n"
        "    return result\n"
    ),
    test="def check(candidate):\n    assert candidate([1, 2, 4]) == 6\n    assert candidate([]) == 0\n",
    entry_point="total",
)
ONE_LINE = Problem(
    task="Small/1",
    prompt="def double(n):\n",
    solution="    return 2 * n\n",
    test="def check(candidate):\n    assert candidate(4) == 8\n",
    entry_point="double",
)
