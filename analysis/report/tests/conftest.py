"""Databases for the report's tests: those of tests/with-postgres, each test its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo

ROOT = Path(__file__).resolve().parents[3]
TEMPLATE = "report_template"
NUMBERS = count(1)


def _url(name: str) -> str:
    """Of another database on the same server."""
    return make_conninfo(os.environ["DATABASE_URL"], dbname=name)


@pytest.fixture(scope="session")
def template() -> str:
    """A database with the service's schema and nothing in it."""
    if "DATABASE_URL" not in os.environ:
        pytest.fail("tests marked `store` run under tests/with-postgres: make test-store")
    create(TEMPLATE)
    with psycopg.connect(_url(TEMPLATE), autocommit=True) as connection:
        for path in sorted((ROOT / "migrations").glob("*.sql")):
            with connection.transaction():
                connection.execute(path.read_text())
    return TEMPLATE


@pytest.fixture
def database(template: str) -> Iterator[str]:
    """The URL of an empty database with the service's schema."""
    yield from fresh(template)


@pytest.fixture
def other_database(template: str) -> Iterator[str]:
    """The URL of another one."""
    yield from fresh(template)


@pytest.fixture
def bare_database(template: str) -> Iterator[str]:  # noqa: ARG001 - it has the server checked
    """The URL of a database without any schema."""
    yield from fresh("template1")


def fresh(template: str) -> Iterator[str]:
    """Make a database, and remove it afterwards."""
    name = f"report_{next(NUMBERS)}"
    create(name, template)
    yield _url(name)
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


def create(name: str, template: str = "template1") -> None:
    """Create a database."""
    with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as connection:
        connection.execute(
            sql.SQL("create database {} template {}").format(
                sql.Identifier(name), sql.Identifier(template)
            )
        )
