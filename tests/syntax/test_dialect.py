"""Of a language's grammars the one that reads the file is taken."""

from itertools import count
from time import thread_time

import pytest
from treefill.errors import GrammarError
from treefill.syntax import dialect
from treefill.syntax.dialect import ASKED_AGAIN_S, dialect_of, statements_near
from treefill.syntax.languages import language_by_id

SQL = language_by_id("sql")
MYSQL = "CREATE TABLE `t` (`id` int NOT NULL AUTO_INCREMENT, PRIMARY KEY (`id`)) ENGINE=InnoDB;\n"
POSTGRES = "COPY t FROM stdin WITH (FORMAT csv);\n"


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("", "postgres"),
        ("SELECT 1;\n", "postgres"),
        (POSTGRES * 3, "postgres"),
        (MYSQL * 3, "sql"),
        (MYSQL + POSTGRES * 2, "postgres"),
    ],
)
def test_the_text_tells_its_dialect(text: str, name: str) -> None:
    assert dialect_of(SQL, text, len(text)).name == name


def test_what_the_user_wants_goes_first() -> None:
    assert dialect_of(SQL, MYSQL, 0, wanted="postgres").name == "postgres"
    with pytest.raises(GrammarError, match=r"no grammar 'oracle' for sql: use one of postgres, sql"):
        dialect_of(SQL, MYSQL, 0, wanted="oracle")


def test_semicolons_in_strings_and_comments_end_nothing() -> None:
    text = "SELECT 'a;b'; -- no; end\nSELECT $$;$$; /* ; */ SELECT \"c;\";\nSELECT "

    assert [each.split()[-1] for each in statements_near(text, len(text))] == ['"c;";', "$$;$$;", "'a;b';"]


def test_the_statement_that_is_being_written_tells_nothing() -> None:
    text = "SELECT 1;\nSELECT ;\nSELECT 3;\n"

    assert "SELECT ;" not in statements_near(text, text.index(" ;") + 1)


def test_only_the_nearest_statements_are_looked_at() -> None:
    text = "SELECT 1;\n" * 500

    near = statements_near(text, len(text))
    assert len(near) == 40


@pytest.mark.parametrize(
    ("text", "others", "name"),
    [
        ("SELECT 1;\nSELECT ", [MYSQL], "sql"),
        ("", [POSTGRES, MYSQL * 3], "sql"),
        ("", [POSTGRES * 3, MYSQL], "postgres"),
        (POSTGRES + "SELECT ", [MYSQL] * 3, "postgres"),  # the text itself tells
        (MYSQL + POSTGRES + "SELECT ", [MYSQL], "sql"),  # it tells of both
        ("", ["SELECT 1;\n"], "postgres"),
        ("", [""] * 9 + [MYSQL], "postgres"),  # only so many are asked
    ],
)
def test_where_a_text_tells_nothing_the_others_do(text: str, others: list[str], name: str) -> None:
    assert dialect_of(SQL, text, len(text), others=others).name == name


def test_a_statement_for_which_there_was_no_time_is_asked_about_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another time: at the next keystroke it would take as long again."""
    parse, asked = dialect.parse, count()
    later_s = [0.0]
    for clock in ("perf_counter", "thread_time"):
        monkeypatch.setattr(dialect, clock, lambda: later_s[0])
    monkeypatch.setattr(dialect, "_VERDICTS", dialect._Verdicts())

    def slow(*arguments: object, **options: object) -> None:
        next(asked)
        later_s[0] += dialect.TIME_LIMIT_S

    monkeypatch.setattr(dialect, "parse", slow)
    statement = MYSQL.replace("`t`", "`u`")
    assert dialect_of(SQL, statement + "SELECT ", len(statement) + 5).name == "postgres"
    assert dialect_of(SQL, statement + "SELECT ", len(statement) + 5).name == "postgres"
    assert next(asked) == 2, "once for each grammar"

    monkeypatch.setattr(dialect, "parse", lambda data, grammar, deadline_s: parse(data, grammar))
    assert dialect_of(SQL, statement + "SELECT ", len(statement) + 5).name == "postgres"
    later_s[0] += ASKED_AGAIN_S + 1
    assert dialect_of(SQL, statement + "SELECT ", len(statement) + 5).name == "sql"


def test_one_that_came_too_late_for_its_turn_is_asked_about_at_the_next_keystroke(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(dialect, "_VERDICTS", dialect._Verdicts())
    monkeypatch.setattr(dialect, "TIME_LIMIT_S", -1.0)
    assert dialect_of(SQL, MYSQL + "SELECT ", len(MYSQL) + 5).name == "postgres"
    monkeypatch.undo()

    assert dialect_of(SQL, MYSQL + "SELECT ", len(MYSQL) + 5).name == "sql"


@pytest.mark.parametrize(
    "piece", ["/* ", "'", '"', "`", "$", "$a$ ", "$a", "-", "--", "/", "/*'$x$", "(", ";"]
)
def test_finding_the_statements_takes_no_more_than_linear_time(piece: str) -> None:
    """What opens and never closes is read once, not once for each place where it might begin."""
    text = piece * (24_000 // len(piece))
    started_s = thread_time()
    statements_near(text, len(text) // 2)

    assert thread_time() - started_s < 0.5
