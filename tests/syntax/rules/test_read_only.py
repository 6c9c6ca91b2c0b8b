"""SQL that only reads, and SQL that may do more, be it to another dialect."""

import pytest
from treefill.syntax.rules.read_only import MAX_CHARS, statement_start, writing


def written(text: str, is_growing: bool = False) -> str:
    found = writing(text, 0, len(text), is_growing)
    return found.what if found else ""


@pytest.mark.parametrize(
    "text",
    [
        "",
        "SELECT 1",
        "select a from t where b = 'DROP TABLE t; DELETE'",
        "(SELECT 1) UNION SELECT 2",
        "WITH x AS (SELECT 1), y AS (VALUES (2)) SELECT * FROM x, y",
        "EXPLAIN SELECT 1",
        "EXPLAIN (ANALYZE, FORMAT JSON) WITH x AS (SELECT 1) SELECT * FROM x",
        "EXPLAIN FORMAT=JSON SELECT 1",
        "SHOW search_path; VALUES (1)",
        'SELECT "delete", t.update, `insert` FROM t',
        "SELECT replace(a, 'b', 'c'), truncate(d, 1)",
        "SELECT substring(a FOR 3)",
        "SELECT $$text$$, data #>> '{a}'",
        "SELECT 1 -- then DELETE; it's\n, 2 /* DROP */",
        "SELECT arr[1], ARRAY['a', 'b']",
    ],
)
def test_what_only_reads(text: str) -> None:
    assert written(text) == ""


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("INSERT INTO t VALUES (1)", "SQL that begins with `INSERT`"),
        ("COPY t TO PROGRAM 'sh'", "SQL that begins with `COPY`"),
        ("call f()", "SQL that begins with `call`"),
        ("SET x = 1", "SQL that begins with `SET`"),
        ("SELECT 1; DROP TABLE t", "SQL that begins with `DROP`"),
        ("SELECT a INTO t FROM u", "SQL that writes: `INTO`"),
        ("WITH x AS (DELETE FROM t RETURNING *) SELECT * FROM x", "SQL that writes: `DELETE`"),
        ("WITH x AS (SELECT 1) INSERT INTO t SELECT * FROM x", "SQL that writes: `INSERT`"),
        ("SELECT a FROM t FOR UPDATE", "SQL that writes: `UPDATE`"),
        ("SELECT a FROM t FOR NO KEY UPDATE", "SQL that locks: `FOR NO`"),
        ("SELECT 1 EXEC f", "SQL that writes: `EXEC`"),
        ("EXPLAIN ANALYZE DELETE FROM t", "EXPLAIN of `DELETE`"),
        ("EXPLAIN ANALYZE EXECUTE p", "EXPLAIN of `EXECUTE`"),
        ("EXPLAIN (ANALYZE) CREATE TABLE u AS SELECT 1", "EXPLAIN of `CREATE`"),
        ("SELECT " + "1," * MAX_CHARS, "what is too long to be judged"),
    ],
)
def test_what_writes(text: str, what: str) -> None:
    assert written(text) == what


@pytest.mark.parametrize(
    "text",
    [
        "SELECT $$'$$; DELETE FROM t; --'",
        "SELECT 'a\\'; DELETE FROM t; --'",
        "SELECT 1 /*! DELETE FROM t */",
        "SELECT 1 /* /* */; DELETE FROM t; /* */ */",
        "SELECT 1 --1; DELETE FROM t",
        "SELECT 1 # it's\n; DELETE FROM t; --'",
        "SELECT [it's] FROM t; DELETE FROM u; SELECT [it's]",
        "\\! rm t",
    ],
)
def test_what_is_a_statement_to_one_dialect_and_a_string_or_comment_to_another(text: str) -> None:
    assert written(text) != ""


@pytest.mark.parametrize(
    ("text", "is_refused"),
    [
        ("SEL", False),
        ("DEL", True),
        ("SELECT del", False),
        ("SELECT delete", False),
        ("SELECT delete ", True),
    ],
)
def test_of_a_text_that_grows_the_last_word_is_open(text: str, is_refused: bool) -> None:
    assert bool(written(text, is_growing=True)) == is_refused


def test_only_the_statements_that_were_touched_are_judged() -> None:
    text = "DELETE FROM t; SELECT 1; DROP TABLE t"
    at = text.index("1")

    assert writing(text, at, at + 1) is None
    assert writing(text, at, text.index("DROP") + 1) is not None
    assert text[statement_start(text) :] == " DROP TABLE t"
