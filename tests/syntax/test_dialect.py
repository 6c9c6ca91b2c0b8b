"""Of a language's grammars the one that reads the file is taken."""

import pytest
from treefill.errors import GrammarError
from treefill.syntax.dialect import dialect_of, statements_near
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
